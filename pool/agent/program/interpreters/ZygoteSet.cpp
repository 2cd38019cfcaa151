#include "pool/agent/program/interpreters/ZygoteSet.h"

#include <algorithm>
#include <climits>

namespace hearth::agent {

namespace {
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kMaxWaitMs = 600'000;
constexpr std::size_t kMaxImports = 100;

/// Checks that it is a dotted name of identifiers, so that it cannot be an option or a path.
bool isModule(std::string_view name) {
    if (name.empty() || name.size() > 200 || name.front() == '.' || name.back() == '.')
        return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.' || (static_cast<unsigned char>(c) >= 0x80);
    });
}
}  // namespace

/// One `prewarm` that has not been answered yet.
class ZygoteSet::Waiting final : public Stream {
public:
    Waiting(ZygoteSet& zygotes, Connection& connection, std::uint32_t id,
            std::vector<std::string> languages, std::int64_t until)
        : zygotes_(zygotes),
          connection_(connection),
          id_(id),
          languages_(std::move(languages)),
          until_ns(until) {
        zygotes_.waiting_.push_back(this);
    }
    ~Waiting() override { detach(); }
    void data(std::string_view) override { connection_.closeAfterFlush(); }
    void end() override {}
    void credit(std::uint32_t) override {}
    void pump() override {}
    void detach() override {
        std::vector<Waiting*>& all = zygotes_.waiting_;
        all.erase(std::remove(all.begin(), all.end(), this), all.end());
    }

    /// Answers if nothing is left to wait for, or if `late`.
    void look(bool late) {
        JsonValue ready = JsonValue::array();
        JsonValue failed = JsonValue::object();
        for (const std::string& language : languages_) {
            const Warming* const warming = zygotes_.warming(language);
            const bool up = warming != nullptr && warming->hasReady();
            if (up) ready.push(language);
            if (warming == nullptr) {
                failed.set(language, "the image has no zygote for it");
            } else if (!warming->complaints().empty()) {
                failed.set(language, warming->complaints());
            } else if (!up && warming->hopeless()) {
                failed.set(language, "its zygote does not start");
            } else if (!up && late) {
                failed.set(language, "not ready in time");
            }
            if (warming != nullptr && !up && !warming->hopeless() && !late) return;
        }
        JsonValue reply = JsonValue::object();
        reply.set("ready", std::move(ready)).set("failed", std::move(failed));
        Connection& connection = connection_;
        connection.reply(id_, reply);
        connection.flush();
    }

private:
    ZygoteSet& zygotes_;
    Connection& connection_;
    const std::uint32_t id_;
    const std::vector<std::string> languages_;

public:
    const std::int64_t until_ns;
};

ZygoteSet::ZygoteSet(EventLoop& loop, const Settings& settings, const Environment& environment,
                     const Languages& languages, ParkedShells& shells, Owner owner)
    : loop_(loop),
      settings_(settings),
      environment_(environment),
      languages_(languages),
      shells_(shells),
      owner_(std::move(owner)) {}

ZygoteSet::~ZygoteSet() = default;

Zygote* ZygoteSet::find(std::string_view language) {
    if (const auto found = all_.find(language); found != all_.end()) return found->second.get();
    std::vector<std::string> command = languages_.zygote(language);
    if (command.empty()) return nullptr;
    Zygote::Owner owner{owner_.label, owner_.forked, owner_.dead, owner_.gone,
                        [this] { changed(); }};
    auto zygote = std::make_unique<Zygote>(loop_, settings_, std::move(owner), std::move(command),
                                           environment_.unbound(), languages_.file(language));
    return all_.emplace(language, std::move(zygote)).first->second.get();
}

Warming* ZygoteSet::warming(std::string_view language) {
    if (language == ParkedShells::kLanguage) return &shells_;
    return find(language);
}

bool ZygoteSet::standsFor(const Zygote& zygote, const std::vector<std::string>& env) const {
    // A bind with a lower cpu limit changes the thread counts of numeric libraries. A zygote
    // without imports has not read them, and its children get the new number.
    const bool unread = environment_.narrowed() && !zygote.imports();
    return !Environment::actsAtStart(unread ? environment_.unbound() : zygote.environment(), env);
}

std::unique_ptr<Parked> ZygoteSet::take(std::string_view language,
                                        const std::vector<std::string>& env) {
    Zygote* const zygote = find(language);
    if (zygote == nullptr) return nullptr;
    zygote->start();
    if (!standsFor(*zygote, env)) return nullptr;
    return zygote->take();
}

std::unique_ptr<Parked> ZygoteSet::takeSoon(std::string_view language,
                                            const std::vector<std::string>& env) {
    std::unique_ptr<Parked> parked = take(language, env);
    Zygote* const zygote = find(language);
    if (parked || zygote == nullptr || !standsFor(*zygote, env)) return parked;
    return zygote->takeComing();
}

void ZygoteSet::answered() {
    const std::int64_t now = nowNs();
    for (const auto& [language, zygote] : all_) zygote->refillSoon(now);
}

void ZygoteSet::prewarm(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    const JsonValue& wanted = body["languages"];
    std::vector<std::string> languages;
    for (std::size_t i = 0; i < wanted.keys().size(); ++i) {
        std::vector<std::string> imports;
        for (const JsonValue& module : wanted.items()[i]["imports"].items()) {
            if (!isModule(module.text()) || imports.size() >= kMaxImports) {
                return connection.fail(stream, "BAD_REQUEST", "imports holds no names of modules");
            }
            imports.emplace_back(module.text());
        }
        languages.push_back(wanted.keys()[i]);
        Warming* const wanted_ahead = warming(languages.back());
        if (wanted_ahead == nullptr) continue;
        if (wanted_ahead != &shells_) find(languages.back())->setImports(std::move(imports));
        wanted_ahead->start();
    }
    const std::int64_t wait = std::clamp<std::int64_t>(body["waitMs"].integer(), 0, kMaxWaitMs);
    auto waiting = std::make_unique<Waiting>(*this, connection, stream, std::move(languages),
                                             nowNs() + wait * kMs);
    Waiting& opened = *waiting;
    connection.open(stream, std::move(waiting));
    opened.look(wait == 0);
}

void ZygoteSet::changed() {
    for (Waiting* waiting : std::vector<Waiting*>(waiting_)) waiting->look(false);
}

void ZygoteSet::killAll() {
    for (const auto& [language, zygote] : all_) zygote->killAll();
}

bool ZygoteSet::reaped(pid_t pid) {
    const std::int64_t now = nowNs();
    return std::any_of(all_.begin(), all_.end(),
                       [&](const auto& entry) { return entry.second->reaped(pid, now); });
}

std::int64_t ZygoteSet::nextTickNs() const noexcept {
    std::int64_t next = INT64_MAX;
    for (const auto& [language, zygote] : all_) next = std::min(next, zygote->nextTickNs());
    for (const Waiting* waiting : waiting_) next = std::min(next, waiting->until_ns);
    return next;
}

void ZygoteSet::tick(std::int64_t now_ns) {
    for (const auto& [language, zygote] : all_) zygote->tick(now_ns);
    for (Waiting* waiting : std::vector<Waiting*>(waiting_)) {
        if (now_ns >= waiting->until_ns) waiting->look(true);
    }
}

}  // namespace hearth::agent
