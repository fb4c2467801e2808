"""What the operators' commands do beside a running or stopped job: look, check, export, restore, replay. Nothing here runs in a container."""
