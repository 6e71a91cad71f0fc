"""Whether something still fails: a command that runs with the candidate as a file."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stripe.ir import ConfigError
from stripe.pipeline.reduction.document import Document


@dataclass(frozen=True, slots=True)
class Command:
    """`words` are the program and its arguments: `{}` stands for the file, which comes last when it stands nowhere.

    A candidate fails when the status is `status`, or any but 0 when that is None, within `seconds`.
    """

    words: tuple[str, ...]
    status: int | None = None
    seconds: float = 60.0

    def fails(self, document: Document) -> bool:
        """Raises ConfigError when the command cannot be run at all."""
        with tempfile.TemporaryDirectory(prefix="stripe-reduce-") as folder:
            path = Path(folder) / f"candidate{document.suffix}"
            path.write_text(document.render(), "utf-8")
            words = [word.replace("{}", str(path)) for word in self.words]
            if words == list(self.words):
                words.append(str(path))
            try:
                result = subprocess.run(words, capture_output=True, check=False, timeout=self.seconds)
            except subprocess.TimeoutExpired:
                return False
            except OSError as error:
                raise ConfigError(f"cannot run '{words[0]}': {error.strerror}", hint="check --test") from None
        return result.returncode != 0 if self.status is None else result.returncode == self.status
