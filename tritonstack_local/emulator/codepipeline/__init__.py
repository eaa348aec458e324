"""CodePipeline that keeps pipelines and checks what they declare. None is ever executed here."""
