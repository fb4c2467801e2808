"""Plain values and their versioned bytes. Imports nothing but the standard library."""
