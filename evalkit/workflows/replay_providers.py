"""Who answers for each candidate: LiteLLM, a model on this machine, or recordings. Opened late, closed always."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.providers.call import Provider
from evalkit.providers.key import request_key
from evalkit.providers.recorded import CellId, RecordedProvider, recording_files
from evalkit.replay.plan import Plan
from evalkit.workflows.candidates import Candidate
from evalkit.workflows.replay_setup import ReplayInputs

if TYPE_CHECKING:
    from evalkit.providers.batch import BatchProvider

__all__ = ["Providers"]


@dataclass
class Providers:
    """The providers of a run, each made when it is first asked for.

    `recorded` are recordings to answer from; with `live` False nothing else is asked, and what is not recorded
    fails. `models` is the folder of local models' files.
    """

    inputs: ReplayInputs
    recorded: tuple[Path, ...] = ()
    live: bool = True
    models: Path | None = None
    notices: list[str] = field(default_factory=list)
    _made: dict[str, Provider] = field(default_factory=dict)
    _open: list[Provider | BatchProvider] = field(default_factory=list)
    _servers: dict[str, Provider] = field(default_factory=dict)
    _judge: Provider | None = None

    def of(self, name: str) -> Provider:
        """The provider of a candidate."""
        if name not in self._made:
            candidate = next(one for one in self.inputs.candidates if one.name == name)
            self._made[name] = self._make(candidate, _identities(self.inputs.plan, name))
        return self._made[name]

    def judge(self, name: str) -> Provider:
        """The provider of the judge, whose replies it is about does not matter."""
        assert self.inputs.judge is not None
        if self._judge is None:
            self._judge = self._make(self.inputs.judge, {})
        return self._judge

    def batches(self, name: str) -> BatchProvider:
        """What makes the provider batches of a candidate."""
        from evalkit.providers.batch import BatchProvider

        candidate = next(one for one in self.inputs.candidates if one.name == name)
        provider = BatchProvider(candidate.model, candidate.connection)
        self._open.append(provider)
        return provider

    def _make(self, candidate: Candidate, identity: dict[str, CellId]) -> Provider:
        if self.live and not self.recorded:
            return self._live(candidate)
        otherwise = self._live(candidate) if self.live else None
        provider = RecordedProvider(recording_files(self.recorded), identity=identity, otherwise=otherwise)
        self.notices += [notice for notice in provider.notices if notice not in self.notices]
        self._open.append(provider)
        return provider

    def _live(self, candidate: Candidate) -> Provider:
        provider: Provider
        if candidate.is_local:
            if candidate.model in self._servers:  # candidates with one model share its server
                return self._servers[candidate.model]
            provider = self._servers[candidate.model] = self._local(candidate)
        else:
            from evalkit.providers.litellm_provider import LiteLLMProvider

            # The run ends a call that takes too long.
            provider = LiteLLMProvider(candidate.connection, timeout_s=None)
        self._open.append(provider)
        return provider

    def _local(self, candidate: Candidate) -> Provider:
        from evalkit.providers.local import LocalProvider

        known = self.inputs.study.calls.local_models.get(candidate.model)
        if known is None:
            return LocalProvider(candidate.model)
        return LocalProvider(
            candidate.model, known, self.models, threads=known.threads, context_tokens=known.context_tokens
        )

    async def aclose(self) -> None:
        """Close all of them."""
        for provider in self._open:
            await provider.aclose()
        self._open.clear()
        self._made.clear()
        self._servers.clear()
        self._judge = None


def _identities(plan: Plan, candidate: str) -> dict[str, CellId]:
    """Which cell each request of a candidate is of, for recordings that know items and not keys.

    The answer of an arm of several steps is that of its last one, which such a recording cannot be asked for.
    """
    cells = (cell for cell in plan.of(candidate) if not cell.follow_ups)
    return {request_key(cell.first): CellId(cell.item, cell.candidate, cell.sample) for cell in cells}
