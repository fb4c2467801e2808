"""A whole job in one thread of virtual time: who goes next, what goes wrong and how long it takes is drawn from a seed."""
