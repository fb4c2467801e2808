"""What a route raises beside the errors of the command line."""


class NotFound(Exception):
    """There is no such thing in this job."""
