"""The generators of random numbers that modules make when they are imported. A zygote's children would all go on with
the same numbers: those made without a seed get a new one in each child, those that a module has seeded stay as they are."""

import gc
import random
import secrets
import sys
import types
import weakref

LEAST_RANDOM_SEED = 1 << 32  # torch's own choice has 64 bits; what a module sets is smaller


class Generators:
    """Watches imports from its making until `settle`; then a child calls `reseed`."""

    def __init__(self):
        self.unseeded = {}  # id -> a weak reference to a random.Random
        self.default_state = None  # of the module `random`, if it was seeded
        self.entropies = set()  # that numpy has drawn for want of a seed
        self.sequences = []
        self.bit_generators = []
        self.torch = None
        self.originals = random.Random.seed, random.Random.setstate, secrets.randbits
        seed, setstate, randbits = self.originals

        def noted_seed(generator, a=None, version=2):
            seed(generator, a, version)
            self.note(generator, a is None)

        def noted_setstate(generator, state):
            setstate(generator, state)
            self.note(generator, False)

        def noted_randbits(k):
            number = randbits(k)
            self.entropies.add(number)
            return number

        random.Random.seed, random.Random.setstate = noted_seed, noted_setstate
        random.seed = types.MethodType(noted_seed, random._inst)
        random.setstate = types.MethodType(noted_setstate, random._inst)
        secrets.randbits = noted_randbits

    def note(self, generator, unseeded):
        if unseeded:
            self.unseeded[id(generator)] = weakref.ref(generator)
        else:
            self.unseeded.pop(id(generator), None)
        if generator is random._inst:
            self.default_state = unseeded or ()

    def settle(self):
        """Ends the watch; what it has found is all that `reseed` needs."""
        noted_randbits = secrets.randbits
        random.Random.seed, random.Random.setstate, secrets.randbits = self.originals
        random.seed, random.setstate = random._inst.seed, random._inst.setstate
        for module in list(sys.modules.values()):  # numpy has it under this name
            if getattr(module, "__dict__", {}).get("randbits") is noted_randbits:
                module.randbits = secrets.randbits
        self.unseeded = [found for found in self.unseeded.values() if found() not in (None, random._inst)]
        self.default_state = random.getstate() if self.default_state == () else None
        if "numpy.random" in sys.modules:
            self.find_numpy(sys.modules["numpy.random"])
        torch = getattr(sys.modules.get("torch"), "default_generator", None)
        if torch is not None and torch.initial_seed() >= LEAST_RANDOM_SEED:
            self.torch = torch

    def find_numpy(self, numbers):
        def is_own(sequence):
            return type(sequence) is numbers.SeedSequence and isinstance(sequence.entropy, int) and \
                sequence.entropy in self.entropies

        for found in gc.get_objects():
            kind = type(found)
            if is_own(found):
                self.sequences.append(found)
            elif issubclass(kind, numbers.BitGenerator) and kind.__module__.startswith("numpy.random."):
                if is_own(found._seed_seq):
                    self.bit_generators.append(found)
            elif kind is numbers.RandomState:
                state = found.get_state(legacy=False)
                if state.get("has_gauss") and is_own(found._bit_generator._seed_seq):
                    found.set_state({**state, "has_gauss": 0, "gauss": 0.0})

    def reseed(self):
        for found in self.unseeded:
            random.Random.seed(found())
        if self.default_state is not None:  # the module itself takes a new seed after a fork
            random.setstate(self.default_state)
        entropies = {}
        for sequence in self.sequences:
            entropy = entropies.setdefault(sequence.entropy, secrets.randbits(128))
            sequence.__init__(entropy, spawn_key=sequence.spawn_key, pool_size=sequence.pool_size,
                              n_children_spawned=sequence.n_children_spawned)
        for generator in self.bit_generators:
            generator.state = type(generator)(generator._seed_seq).state
        if self.torch is not None:
            self.torch.seed()
