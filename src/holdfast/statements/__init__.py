"""What a prompt says that outlasts its task: segments, cues, a small linear classifier. No model is called."""
