"""Authentication and keys: `sasl` has the mechanisms, pure; `keystores` reads the files of Java's key stores."""
