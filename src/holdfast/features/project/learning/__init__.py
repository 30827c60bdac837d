"""What goes on in a project, and the habits that show in it."""
