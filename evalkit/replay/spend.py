"""A cap on what is spent that is never passed: the worst case is reserved before a call and settled after it."""

from __future__ import annotations

import asyncio
from collections import deque
from decimal import Decimal, localcontext

__all__ = ["Budget"]

_DIGITS = 60


class Budget:
    """What has been charged, and what is reserved for calls in flight. Exact decimals; one event loop.

    `cap_usd` None: nothing is held back, and the sums are kept all the same.
    """

    def __init__(self, cap_usd: Decimal | None = None, charged_usd: Decimal = Decimal(0)) -> None:
        self.cap_usd = cap_usd
        self.charged_usd = charged_usd
        self.reserved_usd = Decimal(0)
        self.exhausted = False
        self._waiting: deque[tuple[Decimal, asyncio.Future[bool]]] = deque()

    def fits(self, amount_usd: Decimal) -> bool:
        """Whether so much more can be reserved now."""
        return self.cap_usd is None or _sum(self.charged_usd, self.reserved_usd, amount_usd) <= self.cap_usd

    async def reserve(self, amount_usd: Decimal) -> bool:
        """Hold back `amount_usd` for a call. False: the cap leaves no room for it, whatever calls in flight cost.

        Waits, first come first served, while calls in flight may yet turn out cheaper than what is held for them.
        """
        if self.exhausted:
            return False
        if not self._waiting and self.fits(amount_usd):
            self.reserved_usd = _sum(self.reserved_usd, amount_usd)
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((amount_usd, future))
        self._wake()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                self.settle(amount_usd, Decimal(0))
            else:
                self._wake()
            raise

    def settle(self, reserved_usd: Decimal, charged_usd: Decimal | None) -> None:
        """A call ended: it costs `charged_usd`, or nobody knows (None) and what was reserved stays charged."""
        charged = reserved_usd if charged_usd is None else charged_usd
        self.reserved_usd = _sum(self.reserved_usd, -reserved_usd)
        self.charged_usd = _sum(self.charged_usd, charged)
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            amount, future = self._waiting[0]
            if future.done():
                self._waiting.popleft()
            elif self.exhausted:
                self._waiting.popleft()
                future.set_result(False)
            elif self.fits(amount):
                self._waiting.popleft()
                self.reserved_usd = _sum(self.reserved_usd, amount)
                future.set_result(True)
            elif self.reserved_usd > 0:
                return
            else:
                self.exhausted = True


def _sum(*amounts: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = _DIGITS
        return sum(amounts, Decimal(0))
