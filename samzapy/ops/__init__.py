"""The operations of commands on a running or stopped job: inspect, check, export, restore, replay. Nothing here runs in a container."""
