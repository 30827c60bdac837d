"""What is wrong with an installation, for `holdfast doctor` and the Health page."""
