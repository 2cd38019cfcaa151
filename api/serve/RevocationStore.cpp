#include "api/serve/RevocationStore.h"

namespace hearth::program {

RevocationStore::RevocationStore(controller::Journal& journal) : journal_(journal) {
    journal_.read([this](controller::Database& database) {
        controller::Statement row(database, "SELECT session FROM revocations ORDER BY place");
        const MutexLock lock(mutex_);
        while (row.step()) remember(row.text(0));
    });
}

bool RevocationStore::contains(std::string_view session) const {
    const MutexLock lock(mutex_);
    return sessions_.contains(session);
}

void RevocationStore::add(const std::string& session) {
    journal_.writeNow([&](controller::Database& database) {
        controller::Statement(database, "INSERT OR IGNORE INTO revocations (session) VALUES (?)")
            .bind(session)
            .run();
        controller::Statement(
            database,
            "DELETE FROM revocations WHERE place <= (SELECT MAX(place) FROM revocations) - ?")
            .bind(static_cast<std::int64_t>(kMost))
            .run();
    });
    const MutexLock lock(mutex_);
    remember(session);
}

void RevocationStore::remember(const std::string& session) {
    if (!sessions_.insert(session).second) return;
    order_.push_back(session);
    if (order_.size() <= kMost) return;
    sessions_.erase(order_.front());
    order_.pop_front();
}

}  // namespace hearth::program
