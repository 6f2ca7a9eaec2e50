"""The connectors that come with moldau, a folder each; docs/connect-connectors.md describes them."""
