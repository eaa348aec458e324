"""How calls spread over instances: an assumption, for SageMaker does not publish it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritonstack_capacity.simulation.homes import homes, name_marks
from tritonstack_capacity.simulation.instance import Instance
from tritonstack_capacity.simulation.model_table import ModelTable
from tritonstack_capacity.simulation.scenario import Routing

Choose = Callable[[int], Instance]

ASSUMPTIONS: dict[Routing, str] = {
    "loaded": "a model's calls go to an instance that has it loaded, or that loads it where none has; while "
    "{spill_calls} of them that met it loaded are in progress on each of those, one goes to another instance, which "
    "loads it, too: one at a time. The developer guide (How Multi-Model Endpoints Work) says only: many",
    "sticky": "all calls of a model go to one instance, by a hash of its name, while the fleet stays as it is; a hash "
    "gives instances unequal numbers of models",
    "least_outstanding": "each call goes to the instance with the fewest calls in progress, whatever model it is of",
    "random": "each call goes to any instance with equal probability, whatever model it is of",
}
"""What the output says of the assumption."""


class Router:
    """Chooses among the instances that take calls now."""

    def __init__(self, routing: Routing, *, spill_calls: int, models: ModelTable, uniform: Callable[[], float]) -> None:
        """``uniform`` gives the next number in [0, 1)."""
        self.serving: Sequence[Instance] = ()
        self._marks = name_marks(models.names) if routing == "sticky" else None
        self._uniform = uniform
        self._homes: list[int] = []
        self._spill_calls = spill_calls
        self._choose: Choose = {
            "loaded": self._holder,
            "sticky": self._home,
            "least_outstanding": self._idlest,
            "random": self._any,
        }[routing]

    def changed(self, serving: Sequence[Instance]) -> Choose:
        """These instances take calls from now on; what chooses among them."""
        self.serving = serving
        if len(serving) == 1:
            only = serving[0]
            return lambda _: only
        if self._marks is not None:
            self._homes = homes(self._marks, [each.number for each in serving]).tolist()
        return self._choose

    def _any(self, _: int) -> Instance:
        return self.serving[int(self._uniform() * len(self.serving))]

    def _idlest(self, _: int) -> Instance:
        return self._idlest_of(self.serving)

    def _idlest_of(self, instances: Sequence[Instance]) -> Instance:
        fewest = min(each.in_flight for each in instances)
        equal = [each for each in instances if each.in_flight == fewest]
        return equal[0] if len(equal) == 1 else equal[int(self._uniform() * len(equal))]

    def _holder(self, model: int) -> Instance:
        """What waits for a load is no reason for a second one, or each cold start of seconds would make copies."""
        calls = {each: counts for each in self.serving if (counts := each.calls_of(model)) is not None}
        loading = next((each for each in self.serving if each.is_loading(model)), None)
        if not calls:
            return loading or self._idlest_of(self.serving)
        many = all(met_loaded >= self._spill_calls for _, met_loaded in calls.values())
        if not many or loading is not None or len(calls) == len(self.serving):
            return min(calls, key=lambda each: calls[each][0])
        return self._idlest_of([each for each in self.serving if each not in calls])

    def _home(self, model: int) -> Instance:
        return self.serving[self._homes[model]]
