#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hearth::auth {

/// How many of the server's workers one tenant may hold at a time, so that slow bodies, unread
/// downloads and queued claims of one leave room for the others. Thread-safe.
class WorkerShares {
public:
    /// `limit`: for each tenant.
    explicit WorkerShares(std::size_t limit) : counts_(std::make_shared<Counts>()), limit_(limit) {}

    /// A place for one request, held as long as the returned object. Throws Error(RateLimited) when
    /// the tenant has all of its places taken.
    std::shared_ptr<void> take(const std::string& tenant) const;
    /// For a request that only an operator may send: one of kReserved places beside the share,
    /// which no other work can take, else one of the share. So the work of a tenant never keeps its
    /// operators from draining, deleting and looking.
    std::shared_ptr<void> takeAsOperator(const std::string& tenant) const;

    static constexpr std::size_t kReserved = 4;

private:
    using Held = std::map<std::string, std::size_t>;
    struct Counts {
        std::mutex mutex;
        Held held;      ///< under mutex; without those at zero
        Held reserved;  ///< likewise
    };
    /// Null where all are taken.
    std::shared_ptr<void> place(Held Counts::*of, std::size_t limit,
                                const std::string& tenant) const;

    std::shared_ptr<Counts> counts_;  ///< a ticket may outlive this object
    std::size_t limit_;
};

}  // namespace hearth::auth
