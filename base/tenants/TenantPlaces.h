#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace hearth {

/// How many places of one kind may be taken: in all, and by one tenant. A tenant may hold no more
/// than are free, so that however many of them take all they can, whoever has none finds one
/// (dynamic thresholds as for shared buffers: Choudhury and Hahne, 1998). Where one tenant may have
/// all of them, they are not shared out. Thread-safe; a place may outlive the object.
class TenantPlaces {
public:
    /// Somebody's wait for a place; dropping it leaves the line, and gives the place back if it has
    /// come and was not taken.
    class Turn {
    public:
        Turn() = default;
        virtual ~Turn() = default;
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        virtual bool hasCome() const = 0;
        /// The place that has come, once; else null.
        virtual std::shared_ptr<void> take() = 0;
    };

    TenantPlaces(std::size_t all, std::size_t each);

    /// A place for one, held as long as the returned object; null where there is none left.
    std::shared_ptr<void> take(const std::string& tenant);
    /// Stands in line. A place that is given up goes to the first in line whose tenant may have it.
    /// `come` is then called once, in the thread that gave it up or in this one; it must not block.
    std::shared_ptr<Turn> await(const std::string& tenant, std::function<void()> come);

    std::size_t count() const;
    std::size_t held(const std::string& tenant) const;
    /// Who gets no place has as many as it may, and others would still find one.
    bool hasItsShare(const std::string& tenant) const;

private:
    struct State;
    class InLine;

    const std::shared_ptr<State> state_;
};

}  // namespace hearth
