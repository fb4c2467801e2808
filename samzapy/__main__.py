"""`python -m samzapy` is the `samzapy` command."""

from samzapy.cli.main import main

if __name__ == "__main__":
    main()
