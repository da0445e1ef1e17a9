"""What several tests share: small scenes, the oracle, processes, a Ray cluster."""
