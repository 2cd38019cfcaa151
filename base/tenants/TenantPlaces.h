#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hearth {

/// A limit on places of one kind: in total, and per tenant. A tenant may hold no more places than
/// are free, so a tenant that has none always finds one, however many the other tenants take
/// (dynamic thresholds as for shared buffers: Choudhury and Hahne, 1998). If one tenant may have
/// all places, they are not divided. Thread-safe; a place may outlive the object.
class TenantPlaces {
public:
    /// A wait for a place; destroying it leaves the line, and gives the place back if it has come
    /// and was not taken.
    class Turn {
    public:
        Turn() = default;
        virtual ~Turn() = default;
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        virtual bool hasCome() const = 0;
        /// Returns the place that has come, once; else null.
        virtual std::shared_ptr<void> take() = 0;
    };

    TenantPlaces(std::size_t all, std::size_t each);

    /// Takes a place, held while the returned object lives; null if none is left.
    std::shared_ptr<void> take(const std::string& tenant);
    /// Waits in line. A freed place goes to the first in line whose tenant may have it. `come` is
    /// then called once, in the thread that freed it or in this one; it must not block.
    std::shared_ptr<Turn> await(const std::string& tenant, std::function<void()> come);

    std::size_t count() const;
    std::size_t held(const std::string& tenant) const;
    /// True if a refused tenant has as many as it may have, while others would still find one.
    bool hasItsShare(const std::string& tenant) const;

private:
    struct State;
    class InLine;

    const std::shared_ptr<State> state_;
};

}  // namespace hearth
