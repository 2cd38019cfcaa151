#include "api/http/front/ConnectionTable.h"

#include <algorithm>
#include <utility>

namespace hearth::api {

Connection* ConnectionTable::find(std::uint64_t id) const {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : found->second.get();
}

Connection& ConnectionTable::add(std::unique_ptr<Connection> connection) {
    count(*connection);
    Connection& added = *connection;
    all_.emplace(added.id, std::move(connection));
    return added;
}

std::unique_ptr<Connection> ConnectionTable::take(const Connection& connection) {
    const auto found = all_.find(connection.id);
    if (found == all_.end()) return nullptr;
    std::unique_ptr<Connection> taken = std::move(found->second);
    all_.erase(found);
    uncount(*taken);
    return taken;
}

void ConnectionTable::count(Connection& connection) {
    if (connection.among != nullptr) return;
    connection.among = &per_address_[connection.counted_as];
    ++*connection.among;
}

void ConnectionTable::uncount(Connection& connection) {
    if (connection.among == nullptr) return;
    if (--*std::exchange(connection.among, nullptr) == 0) {
        per_address_.erase(connection.counted_as);
    }
}

std::size_t ConnectionTable::countOf(const std::string& address) const {
    const auto found = per_address_.find(address);
    return found == per_address_.end() ? 0 : found->second;
}

template <typename Candidate>
Connection* ConnectionTable::leastWorth(const Candidate& candidate) const {
    const TimePoint now = clock_.now();
    Connection* least = nullptr;
    std::pair<Worth, std::uint64_t> least_key{Worth::Kept, 0};
    for (const auto& [id, connection] : all_) {
        const std::pair key{worthOf(*connection, now), id};
        if (key >= least_key || !candidate(*connection, key.first)) continue;
        least = connection.get();
        least_key = key;
    }
    return least;
}

Connection* ConnectionTable::leastOf(const std::string& address) const {
    return leastWorth([&](const Connection& each, Worth) { return each.counted_as == address; });
}

Connection* ConnectionTable::leastOfAll() const {
    std::size_t most = 0;
    for (const auto& [address, held] : per_address_) most = std::max(most, held);
    Connection* const least = leastWorth([&](const Connection& each, Worth) {
        return each.among != nullptr && *each.among == most;
    });
    if (least != nullptr && worthOf(*least, clock_.now()) < Worth::Fresh) return least;
    Connection* const idle =
        leastWorth([](const Connection&, Worth worth) { return worth <= Worth::Idle; });
    return idle != nullptr ? idle : least;
}

ConnectionTable::Worth ConnectionTable::worthOf(const Connection& connection, TimePoint now) const {
    switch (connection.place) {
        case Connection::Place::Flushing:
            return now - connection.moved_at >= options_.unread ? Worth::Unread : Worth::Answered;
        case Connection::Place::Reading:
            if (connection.served) return Worth::Idle;
            return now - connection.accepted_at >= options_.fresh ? Worth::Silent : Worth::Fresh;
        case Connection::Place::Closing:
            return Worth::Closing;
        case Connection::Place::AtWorker:
        case Connection::Place::Suspended:
        case Connection::Place::Streaming:
            return Worth::Kept;
    }
    return Worth::Kept;
}

}  // namespace hearth::api
