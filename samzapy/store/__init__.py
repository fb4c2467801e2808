"""Stores: the overlay that a task sees, the engines below it, and their directories."""
