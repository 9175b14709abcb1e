"""When a prompt cache pays: pure formulas in token equivalents."""

from __future__ import annotations

__all__ = ["cache_break_even_requests", "prefix_token_equivalents", "weighted_tokens"]


def weighted_tokens(input_tokens: float, output_tokens: float, output_weight: float) -> float:
    """`input + output * weight`: one request in units of an input token; `weight` = output / input price.

    >>> weighted_tokens(10_000, 200, 5)
    11000
    """
    return input_tokens + output_tokens * output_weight


def prefix_token_equivalents(prefix_tokens: float, hit_rate: float, read_price: float) -> float:
    """`prefix * (1 - hit) + prefix * hit * read`: what a static prefix costs, in tokens at the full input price.

    `hit_rate` is the share of requests that find it cached, `read_price` a cache read's share of the input price;
    both in [0, 1].
    """
    for name, share in (("hit_rate", hit_rate), ("read_price", read_price)):
        if not 0 <= share <= 1:
            raise ValueError(
                f"The `{name}` parameter of `prefix_token_equivalents` must be in [0, 1]. Got {share!r} instead."
            )
    return prefix_tokens * (1 - hit_rate) + prefix_tokens * hit_rate * read_price


def cache_break_even_requests(write_price: float, read_price: float) -> float:
    """`(W - H) / (1 - H)`: caching a prefix pays for more requests than this.

    `write_price` (W) and `read_price` (H) are multiples of the input price: one write and N - 1 reads cost
    `W + (N - 1) * H`, without a cache they cost `N`.
    """
    if not 0 <= read_price < 1:
        raise ValueError(
            "The `read_price` parameter of `cache_break_even_requests` must be in [0, 1). "
            f"Got {read_price!r} instead."
        )
    return (write_price - read_price) / (1 - read_price)
