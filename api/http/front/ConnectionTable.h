#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "api/http/front/Connection.h"

namespace hearth::api {

/// The connections of an event loop: found by id, counted by address, and the choice of the one
/// that makes room for another. Used by the loop's thread.
class ConnectionTable {
public:
    ConnectionTable(const FrontOptions& options, const Clock& clock)
        : options_(options), clock_(clock) {}

    std::size_t size() const { return all_.size(); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }
    /// Null if it has been taken out.
    Connection* find(std::uint64_t id) const;
    /// Adds it, and counts it.
    Connection& add(std::unique_ptr<Connection> connection);
    /// Takes it out; null if that has happened already.
    std::unique_ptr<Connection> take(const Connection& connection);

    /// Adds a connection to the count of its address, or removes it: while an answer holds it, it
    /// counts for its tenant instead.
    void count(Connection& connection);
    void uncount(Connection& connection);
    std::size_t countOf(const std::string& address) const;

    /// Returns the connection of an address that makes room for another: the oldest of those that
    /// are worth least. Null if all are kept: at work, suspended or streaming.
    Connection* leastOf(const std::string& address) const;
    /// The same among all: an address that has the most connections loses one. A newly accepted
    /// one stays if another address has an idle one.
    Connection* leastOfAll() const;

private:
    /// The order in which connections are closed to make room. A newly accepted one comes last:
    /// otherwise clients that take no answers would cause each newcomer to be closed.
    enum class Worth { Unread, Silent, Idle, Closing, Answered, Fresh, Kept };
    Worth worthOf(const Connection& connection, TimePoint now) const;
    /// Chooses among the connections for which `candidate(connection, worth)` is true.
    template <typename Candidate>
    Connection* leastWorth(const Candidate& candidate) const;

    const FrontOptions& options_;
    const Clock& clock_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> all_;
    std::map<std::string, std::size_t, std::less<>> per_address_;
};

}  // namespace hearth::api
