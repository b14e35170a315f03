"""The task: prompts with their references, how a prompt is put to the model, and whether it belongs here."""
