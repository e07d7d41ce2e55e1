"""The procedural editor's drawing: primitives, how a finding is composed of them, and how one is removed."""
