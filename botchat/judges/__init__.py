"""Who answers: each judge takes any protocol's case."""
