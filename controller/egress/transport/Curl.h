#pragma once

#include <curl/curl.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hearth::broker {

/// How long a connection to a server outside may take to come about.
inline constexpr long kConnectSeconds = 15;

/// libcurl, ready: once for the process, before anything of it is used; never taken down again.
void initialiseCurl();

/// One handle of libcurl with its connections. Used by one thread at a time.
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

/// A line of a head as libcurl's header callback has it, without its end.
std::string_view headLine(const char* bytes, std::size_t size) noexcept;

/// A list of libcurl: headers, resolutions.
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

}  // namespace hearth::broker
