"""Who draws the noise: an operating-system-keyed stream for releases, a seeded one for tests.

Both feed uniform words to the same exact samplers (`discrete_gaussian`, `gumbel`), so tests exercise what releases run.
"""

from __future__ import annotations

import hashlib
import os
from typing import Literal, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.base import CipherContext
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from synth_platform.privacy.discrete_gaussian import IntArray, discrete_gaussian
from synth_platform.privacy.gumbel import FloatArray, gumbel_top


class NoiseSource(Protocol):
    """Anything that draws discrete Gaussian noise and noisy choices and says where its randomness comes from."""

    @property
    def source(self) -> Literal["cryptographic", "seeded"]:
        """A "seeded" draw can never reach ELIGIBLE_*."""
        ...

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """`size` independent draws of N_Z(0, sigma²); sigma in grid steps, within [2^-10, 2^40]."""
        ...

    def gumbel_top(self, scores: FloatArray, size: int) -> IntArray:
        """Positions of the `size` largest of scores [m] + standard Gumbel noise, largest first; 1 <= size <= m."""
        ...


class CryptographicNoise:
    """AES-256-CTR under a new key from the operating system for every block of words.

    No state outlives a block: forked processes and threads cannot share a stream, and a later look at the memory of the
    process does not give back noise that was drawn.
    """

    @property
    def source(self) -> Literal["cryptographic"]:
        """Fit for releases."""
        return "cryptographic"

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """`size` independent draws of N_Z(0, sigma²); sigma in grid steps."""
        return discrete_gaussian(sigma, size, _words_under_a_new_key)

    def gumbel_top(self, scores: FloatArray, size: int) -> IntArray:
        """Positions of the `size` largest of scores [m] + standard Gumbel noise, largest first."""
        return gumbel_top(scores, size, _words_under_a_new_key)


class SeededNoise:
    """The same sampler over a stream that `seed` fixes: the same calls in the same order give the same noise."""

    def __init__(self, seed: int) -> None:
        self._stream = _stream(hashlib.sha256(f"seeded noise {seed}".encode()).digest())

    @property
    def source(self) -> Literal["seeded"]:
        """Fit for tests only."""
        return "seeded"

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """`size` draws of N_Z(0, sigma²) from the next part of the stream; sigma in grid steps."""
        return discrete_gaussian(sigma, size, lambda n: _words(self._stream, n))

    def gumbel_top(self, scores: FloatArray, size: int) -> IntArray:
        """Positions of the `size` largest of scores [m] + Gumbel noise from the next part of the stream."""
        return gumbel_top(scores, size, lambda n: _words(self._stream, n))


def _stream(key: bytes) -> CipherContext:
    return Cipher(AES(key), CTR(bytes(16))).encryptor()


def _words(stream: CipherContext, n: int) -> NDArray[np.uint64]:
    return np.frombuffer(stream.update(bytes(8 * n)), dtype="<u8").astype(np.uint64, copy=False)


def _words_under_a_new_key(n: int) -> NDArray[np.uint64]:
    return _words(_stream(os.urandom(32)), n)
