"""The controller that runs in ZooKeeper's place: its settings file, its node, its commands. Start at `node`."""
