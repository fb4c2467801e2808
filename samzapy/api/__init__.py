"""What a task author sees. Imports nothing but the standard library and typing_extensions."""
