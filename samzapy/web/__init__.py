"""What people, scripts and other programs see of a job over HTTP, and what they may do to it; and the page, which is a client of that."""
