#include "controller/egress/credentials/TlsAuthority.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <stdexcept>

#include "base/Ids.h"
#include "controller/egress/policy/IpAddress.h"

namespace hearth::egress {
namespace {

constexpr long kDay = 24L * 60 * 60;
/// Longer than any workspace lives; sandboxes use the machine's own clock.
constexpr long kAuthorityDays = 3'650;
/// Programs refuse server certificates that are valid for more than 398 days.
constexpr long kServerDays = 397;
constexpr std::size_t kSerialBytes = 16;

template <auto Free>
struct Freed {
    template <typename T>
    void operator()(T* object) const {
        Free(object);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<::EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<::X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<::X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Freed<::BIO_free>>;

void require(bool done) {
    if (!done) throw std::runtime_error("OpenSSL refuses to make a certificate");
}

std::string textOf(BIO* memory) {
    char* data = nullptr;
    const long size = ::BIO_get_mem_data(memory, &data);
    return {data, static_cast<std::size_t>(size)};
}

std::string generalName(const std::string& host) {
    return IpAddress::parse(host) ? "IP:" + host : "DNS:" + host;
}

/// The host as a name constraint, in which an address has a mask.
std::string subtree(const std::string& host) {
    const auto address = IpAddress::parse(host);
    if (!address) return "permitted;DNS:" + host;
    const bool v6 = host.find(':') != std::string::npos;
    return "permitted;IP:" + host +
           (v6 ? "/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" : "/255.255.255.255");
}

std::string permittedOnly(const std::vector<std::string>& hosts) {
    std::string out = "critical";
    bool names = false;
    bool addresses = false;
    for (const std::string& host : hosts) {
        (IpAddress::parse(host) ? addresses : names) = true;
        out += "," + subtree(host);
    }
    // A kind of name without a permitted entry would be unrestricted.
    if (!names) out += ",permitted;DNS:invalid";
    if (!addresses) {
        out += ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0";
    }
    return out;
}

void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
    X509V3_CTX context;
    ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const Extension extension(::X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
    require(extension != nullptr && ::X509_add_ext(certificate, extension.get(), -1) == 1);
}

/// An unsigned certificate. RFC 5280: an unguessable, positive serial number below 20 octets.
Certificate blank(EVP_PKEY* key, const std::string& name, long days) {
    Certificate out(::X509_new());
    require(out != nullptr);
    std::array<unsigned char, kSerialBytes> serial{};
    randomBytes(serial.data(), serial.size());
    serial[0] = static_cast<unsigned char>((serial[0] & 0x7FU) | 1U);
    const std::unique_ptr<BIGNUM, Freed<::BN_free>> number(
        ::BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr));
    require(number != nullptr &&
            ::BN_to_ASN1_INTEGER(number.get(), ::X509_get_serialNumber(out.get())) != nullptr &&
            ::X509_set_version(out.get(), X509_VERSION_3) == 1 &&
            ::X509_gmtime_adj(::X509_getm_notBefore(out.get()), -kDay) != nullptr &&
            ::X509_gmtime_adj(::X509_getm_notAfter(out.get()), days * kDay) != nullptr &&
            ::X509_set_pubkey(out.get(), key) == 1);
    require(::X509_NAME_add_entry_by_txt(::X509_get_subject_name(out.get()), "CN", MBSTRING_ASC,
                                         reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                                         -1, 0) == 1);
    return out;
}

int chooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* in, unsigned in_size, void*) {
    static constexpr std::array<unsigned char, 9> kHttp11{8,   'h', 't', 't', 'p',
                                                          '/', '1', '.', '1'};
    unsigned char* chosen = nullptr;
    if (::SSL_select_next_proto(&chosen, out_size, kHttp11.data(), kHttp11.size(), in, in_size) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

}  // namespace

struct TlsAuthority::Material {
    Key key;
    Certificate certificate;
};

TlsAuthority::TlsAuthority(const std::vector<std::string>& hosts)
    : material_([&] {
          auto out = std::make_unique<Material>();
          out->key.reset(::EVP_EC_gen("P-256"));
          require(out->key != nullptr);
          out->certificate = blank(out->key.get(), "Hearth workspace", kAuthorityDays);
          X509* const made = out->certificate.get();
          require(::X509_set_issuer_name(made, ::X509_get_subject_name(made)) == 1);
          extend(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
          extend(made, made, NID_key_usage, "critical,keyCertSign");
          extend(made, made, NID_subject_key_identifier, "hash");
          extend(made, made, NID_name_constraints, permittedOnly(hosts));
          require(::X509_sign(made, out->key.get(), ::EVP_sha256()) != 0);
          return out;
      }()) {}

TlsAuthority::TlsAuthority(std::unique_ptr<const Material> material)
    : material_(std::move(material)) {}

std::unique_ptr<TlsAuthority> TlsAuthority::fromPem(const std::string& private_pem) {
    auto out = std::make_unique<Material>();
    const Memory memory(
        ::BIO_new_mem_buf(private_pem.data(), static_cast<int>(private_pem.size())));
    require(memory != nullptr);
    out->certificate.reset(::PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
    out->key.reset(::PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr));
    require(out->certificate != nullptr && out->key != nullptr &&
            ::X509_check_private_key(out->certificate.get(), out->key.get()) == 1);
    return std::unique_ptr<TlsAuthority>(new TlsAuthority(std::move(out)));
}

TlsAuthority::~TlsAuthority() = default;

std::string TlsAuthority::certificatePem() const {
    const Memory memory(::BIO_new(::BIO_s_mem()));
    require(memory != nullptr &&
            ::PEM_write_bio_X509(memory.get(), material_->certificate.get()) == 1);
    return textOf(memory.get());
}

std::string TlsAuthority::privatePem() const {
    const Memory memory(::BIO_new(::BIO_s_mem()));
    require(memory != nullptr &&
            ::PEM_write_bio_X509(memory.get(), material_->certificate.get()) == 1 &&
            ::PEM_write_bio_PrivateKey(memory.get(), material_->key.get(), nullptr, nullptr, 0,
                                       nullptr, nullptr) == 1);
    return textOf(memory.get());
}

std::shared_ptr<SSL_CTX> TlsAuthority::serverFor(const std::string& host) {
    const MutexLock lock(mutex_);
    if (const auto known = servers_.find(host); known != servers_.end()) return known->second;
    // The server gets its own key: the authority's key only signs.
    const Key key(::EVP_EC_gen("P-256"));
    require(key != nullptr);
    const Certificate leaf = blank(key.get(), "Hearth egress gateway", kServerDays);
    X509* const authority = material_->certificate.get();
    require(::X509_set_issuer_name(leaf.get(), ::X509_get_subject_name(authority)) == 1);
    extend(leaf.get(), authority, NID_basic_constraints, "critical,CA:FALSE");
    extend(leaf.get(), authority, NID_key_usage, "critical,digitalSignature");
    extend(leaf.get(), authority, NID_ext_key_usage, "serverAuth");
    extend(leaf.get(), authority, NID_subject_key_identifier, "hash");
    extend(leaf.get(), authority, NID_authority_key_identifier, "keyid:always");
    extend(leaf.get(), authority, NID_subject_alt_name, generalName(host));
    require(::X509_sign(leaf.get(), material_->key.get(), ::EVP_sha256()) != 0);
    std::shared_ptr<SSL_CTX> server(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free);
    require(server != nullptr &&
            ::SSL_CTX_set_min_proto_version(server.get(), TLS1_2_VERSION) == 1 &&
            ::SSL_CTX_use_certificate(server.get(), leaf.get()) == 1 &&
            ::SSL_CTX_use_PrivateKey(server.get(), key.get()) == 1);
    ::SSL_CTX_set_alpn_select_cb(server.get(), &chooseProtocol, nullptr);
    ::SSL_CTX_set_options(server.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    ::SSL_CTX_set_session_cache_mode(server.get(), SSL_SESS_CACHE_OFF);
    servers_.emplace(host, server);
    return server;
}

}  // namespace hearth::egress
