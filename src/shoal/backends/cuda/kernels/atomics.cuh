// SPDX-License-Identifier: Apache-2.0
// Atomics that rules call, one for each type of element, by names that the compiler of rules writes.
//
// All are relaxed: supersteps are separated by barriers, which order everything else.  Elements of one and two bytes are
// changed through the word they lie in.  `min` and `max` say whether they stored their value, `replace` whether it found
// what it expected; the others return the old value.
#pragma once

#include "types.cuh"

namespace shoal {

template <class T>
INLINE T load(const T* address) {
    return *const_cast<const volatile T*>(address);
}

template <class T>
INLINE void store(T* address, T value) {
    *const_cast<volatile T*>(address) = value;
}

// Bits of a value, and back.
template <class Bits, class T>
INLINE Bits as_bits(T value) {
    static_assert(sizeof(Bits) == sizeof(T), "of the same size");
    Bits bits;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <int size>
struct Word;
template <>
struct Word<4> { using type = unsigned int; };
template <>
struct Word<8> { using type = unsigned long long; };

// Store `desired` where the bits of `seen` stand; true if they did.
template <class T>
INLINE bool replace(T* address, T seen, T desired) {
    if constexpr (sizeof(T) >= 4) {
        using Bits = typename Word<sizeof(T)>::type;
        Bits expected = as_bits<Bits>(seen);
        return atomicCAS(reinterpret_cast<Bits*>(address), expected, as_bits<Bits>(desired)) == expected;
    } else {
        // Others may change the rest of the word meanwhile: only a change of these bits is a refusal.
        auto place = reinterpret_cast<unsigned long long>(address);
        auto word = reinterpret_cast<unsigned int*>(place & ~3ull);
        unsigned int shift = static_cast<unsigned int>(place & 3ull) * 8;
        unsigned int mask = ((1u << (8 * sizeof(T))) - 1u) << shift;
        unsigned int expected = (static_cast<unsigned int>(seen) << shift) & mask;
        unsigned int wanted = (static_cast<unsigned int>(desired) << shift) & mask;
        unsigned int now = load(word);
        while ((now & mask) == expected) {
            unsigned int before = atomicCAS(word, now, (now & ~mask) | wanted);
            if (before == now) return true;
            now = before;
        }
        return false;
    }
}

// Store what a function makes of the old value, until nobody has changed it meanwhile; return the old value.
template <class T, class Function>
INLINE T change(T* address, Function function) {
    while (true) {
        T seen = load(address);
        if (replace(address, seen, function(seen))) return seen;
    }
}

template <class T>
INLINE T add(T* address, T value) {
    if constexpr (sizeof(T) >= 4 && (!is_integer<T>)) {
        return atomicAdd(address, value);
    } else if constexpr (sizeof(T) >= 4) {
        using Bits = typename Word<sizeof(T)>::type;
        return static_cast<T>(atomicAdd(reinterpret_cast<Bits*>(address), static_cast<Bits>(value)));
    } else {
        return change(address, [=](T seen) { return static_cast<T>(seen + value); });
    }
}

// Add, and return nothing: lanes that add to one place do so together, by one atomic.  Those of a long list do: sums over
// the hubs of a Kronecker graph took twice as long with an atomic for each edge.  Each lane takes over the sum of the next
// one of its place, and then knows the one behind that, so after five rounds the first has all.
template <class T>
INLINE void accumulate(T* address, T value) {
    if constexpr (sizeof(T) < 4) {
        add(address, value);
    } else {
        const Word32 active = __activemask();
        const Word32 together = __match_any_sync(active, reinterpret_cast<Word64>(address));
        const Word32 above = together & ~((2u << lane()) - 1u);
        int next = __ffs(above) - 1;
        while (__any_sync(active, next >= 0)) {
            const int from = next < 0 ? lane() : next;
            const T its_sum = __shfl_sync(active, value, from);
            const int its_next = __shfl_sync(active, next, from);
            if (next >= 0) {
                value += its_sum;
                next = its_next;
            }
        }
        if (__ffs(together) - 1 == lane()) add(address, value);
    }
}

template <class T>
INLINE T bit_or(T* address, T value) {
    if constexpr (sizeof(T) >= 4) {
        using Bits = typename Word<sizeof(T)>::type;
        return static_cast<T>(atomicOr(reinterpret_cast<Bits*>(address), static_cast<Bits>(value)));
    } else {
        auto place = reinterpret_cast<unsigned long long>(address);
        auto word = reinterpret_cast<unsigned int*>(place & ~3ull);
        unsigned int shift = static_cast<unsigned int>(place & 3ull) * 8;
        unsigned int mask = (1u << (8 * sizeof(T))) - 1u;
        return static_cast<T>(atomicOr(word, (static_cast<unsigned int>(value) & mask) << shift) >> shift);
    }
}

template <class T>
INLINE T bit_and(T* address, T value) {
    if constexpr (sizeof(T) >= 4) {
        using Bits = typename Word<sizeof(T)>::type;
        return static_cast<T>(atomicAnd(reinterpret_cast<Bits*>(address), static_cast<Bits>(value)));
    } else {
        return change(address, [=](T seen) { return static_cast<T>(seen & value); });
    }
}

template <class T>
INLINE T exchange(T* address, T value) {
    if constexpr (sizeof(T) >= 4) {
        using Bits = typename Word<sizeof(T)>::type;
        return as_bits<T>(atomicExch(reinterpret_cast<Bits*>(address), as_bits<Bits>(value)));
    } else {
        return change(address, [=](T) { return value; });
    }
}

// A load first: most proposals lose, and a load costs less than an atomic.
template <class T>
INLINE int store_smaller(T* address, T value) {
    if constexpr (sizeof(T) >= 4 && is_integer<T>) {
        return value < atomicMin(address, value);
    } else {
        T seen = load(address);
        while (value < seen) {
            if (replace(address, seen, value)) return 1;
            seen = load(address);
        }
        return 0;
    }
}

template <class T>
INLINE int store_larger(T* address, T value) {
    if constexpr (sizeof(T) >= 4 && is_integer<T>) {
        return value > atomicMax(address, value);
    } else {
        T seen = load(address);
        while (value > seen) {
            if (replace(address, seen, value)) return 1;
            seen = load(address);
        }
        return 0;
    }
}

}  // namespace shoal

#define SHOAL_STORABLE(T, suffix)                                                                                      \
    extern "C" __device__ T shoal_load_##suffix(T* address) { return shoal::load(address); }                           \
    extern "C" __device__ void shoal_store_##suffix(T* address, T value) { shoal::store(address, value); }             \
    extern "C" __device__ T shoal_exchange_##suffix(T* address, T value) { return shoal::exchange(address, value); }   \
    extern "C" __device__ int shoal_replace_##suffix(T* address, T seen, T desired) {                                  \
        return shoal::replace(address, seen, desired);                                                                 \
    }                                                                                                                  \
    extern "C" __device__ int shoal_min_##suffix(T* address, T value) { return shoal::store_smaller(address, value); } \
    extern "C" __device__ int shoal_max_##suffix(T* address, T value) { return shoal::store_larger(address, value); }  \
    extern "C" __device__ T shoal_add_##suffix(T* address, T value) { return shoal::add(address, value); }             \
    extern "C" __device__ void shoal_accumulate_##suffix(T* address, T value) { shoal::accumulate(address, value); }

#define SHOAL_BITWISE(T, suffix)                                                                                       \
    extern "C" __device__ T shoal_or_##suffix(T* address, T value) { return shoal::bit_or(address, value); }           \
    extern "C" __device__ T shoal_and_##suffix(T* address, T value) { return shoal::bit_and(address, value); }

SHOAL_STORABLE(float, f32)
SHOAL_STORABLE(double, f64)
SHOAL_STORABLE(signed char, i8)
SHOAL_STORABLE(unsigned char, u8)
SHOAL_STORABLE(short, i16)
SHOAL_STORABLE(unsigned short, u16)
SHOAL_STORABLE(int, i32)
SHOAL_STORABLE(unsigned int, u32)
SHOAL_STORABLE(long long, i64)
SHOAL_STORABLE(unsigned long long, u64)
SHOAL_BITWISE(signed char, i8)
SHOAL_BITWISE(unsigned char, u8)
SHOAL_BITWISE(short, i16)
SHOAL_BITWISE(unsigned short, u16)
SHOAL_BITWISE(int, i32)
SHOAL_BITWISE(unsigned int, u32)
SHOAL_BITWISE(long long, i64)
SHOAL_BITWISE(unsigned long long, u64)

extern "C" __device__ long long shoal_nanoseconds() { return shoal::nanoseconds(); }
