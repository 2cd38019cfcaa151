#pragma once

#include <curl/curl.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth::egress {

/// The time limit for connecting to an outside server.
inline constexpr long kConnectSeconds = 15;

/// Initialises libcurl once for the process, before its first use; it is never cleaned up.
void initialiseCurl();

/// One libcurl handle with its connections. Used by one thread at a time.
class CurlHandle {
public:
    CurlHandle();
    CurlHandle(const CurlHandle&) = delete;
    CurlHandle& operator=(const CurlHandle&) = delete;
    ~CurlHandle() { ::curl_easy_cleanup(curl_); }

    CURL* get() const noexcept { return curl_; }
    template <typename Value>
    void set(CURLoption option, Value value) {
        if (::curl_easy_setopt(curl_, option, value) != CURLE_OK) {
            throw std::logic_error("libcurl refuses an option");
        }
    }
    /// Forgets all options, keeps the connections.
    void reset() { ::curl_easy_reset(curl_); }

private:
    CURL* curl_;
};

/// A header line from libcurl's header callback, without its line end.
std::string_view headLine(const char* bytes, std::size_t size) noexcept;

/// A list for libcurl: headers, resolutions.
class CurlList {
public:
    void add(const std::string& line);
    curl_slist* get() const noexcept { return list_.get(); }

private:
    struct Free {
        void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
    };
    std::unique_ptr<curl_slist, Free> list_;
};

}  // namespace hearth::egress
