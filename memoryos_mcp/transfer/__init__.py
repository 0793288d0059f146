"""Exchange: a memory is taken along as one file, and memories of other systems are taken in."""
