"""The order of the gallery: what most readers want first comes first."""

from __future__ import annotations

EXAMPLES = (
    "pump_end_to_end",
    "noisy_labels",
    "choosing_epsilon_and_kappa",
    "does_joining_pay",
    "curves_of_a_model",
    "several_classes",
    "worst_case_in_two_dimensions",
)


class ExampleOrder:
    """A sort key for sphinx-gallery; a file that is not listed is an error."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file_name: str) -> int:
        """The place of a file."""
        return EXAMPLES.index(file_name.removesuffix(".py"))
