"""Real programs at the ends of a scenario's network, in real time: `lasthop emulate`."""
