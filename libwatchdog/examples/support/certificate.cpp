#include "support/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace watchdog::test {
namespace {

std::string text_of(BIO* memory) {
  char* begin = nullptr;
  const long bytes = BIO_get_mem_data(memory, &begin);
  return {begin, static_cast<std::size_t>(bytes)};
}

}  // namespace

Certificate make_certificate(const std::string& subject, long age_seconds) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -age_seconds);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3'600 - age_seconds);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, subject.c_str()),
      X509_EXTENSION_free);
  X509_add_ext(made.get(), names.get(), -1);
  X509_sign(made.get(), key.get(), EVP_sha256());

  const std::unique_ptr<BIO, decltype(&BIO_free)> certificate(BIO_new(BIO_s_mem()), BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> secret(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_X509(certificate.get(), made.get());
  PEM_write_bio_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {.certificate = text_of(certificate.get()), .key = text_of(secret.get())};
}

}  // namespace watchdog::test
