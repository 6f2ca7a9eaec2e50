"""The metadata quorum: `raft.core` with a disk, a network and a clock. Start at `quorum`."""
