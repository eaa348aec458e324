"""Rules of SageMaker that the local AWS and the simulation share: pure functions, standard library only."""
