"""Lists the packages, and puts the bundled studies and rubrics, which stand beside the package, into the wheel.

Everything else about the build is in pyproject.toml, which cannot add to the packages that it finds.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

BUNDLED = [folder for folder in ("labelsets", "rubrics") if Path(folder).is_dir()]
TEMPLATES = ["css", "html", "j2", "js", "svg"]
DATA = ["csv", "gz", "json", "jsonl", "md", "parquet", "po", "txt", "typed", "yaml", *TEMPLATES]


def bundled(folder: str) -> list[str]:
    """The folder and those below it, as packages; that is how data outside the package becomes part of it."""
    name = f"evalkit._bundled.{folder}"
    return [name, *(f"{name}.{below}" for below in find_namespace_packages(folder))]


setup(
    packages=[
        *find_namespace_packages(include=["evalkit", "evalkit.*"], exclude=["*.__pycache__", "*.__pycache__.*"]),
        *(name for folder in BUNDLED for name in bundled(folder) if "__pycache__" not in name),
    ],
    package_dir={f"evalkit._bundled.{folder}": folder for folder in BUNDLED},
    package_data={"": [f"*.{ending}" for ending in DATA]},
)
