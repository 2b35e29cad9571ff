"""Problems of other projects' examples and tests, in this library's terms."""
