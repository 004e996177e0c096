#include "cli/certificates.h"

#include <openssl/x509.h>

#include <cstdlib>
#include <filesystem>

namespace watchdog::monitor {

void find_certificates() {
  // Debian and Alpine; Fedora and RHEL; openSUSE; BSD and older Alpine. As Go's crypto/x509 looks.
  constexpr const char* places[] = {"/etc/ssl/certs/ca-certificates.crt",
                                    "/etc/pki/tls/certs/ca-bundle.crt",
                                    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
  std::error_code ignored;
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs yet
  if (std::getenv(X509_get_default_cert_file_env()) != nullptr ||
      std::getenv(X509_get_default_cert_dir_env()) != nullptr ||
      std::filesystem::exists(X509_get_default_cert_file(), ignored) ||
      std::filesystem::exists(X509_get_default_cert_dir(), ignored)) {
    return;
  }
  for (const auto* place : places) {
    if (std::filesystem::exists(place, ignored)) {
      setenv(X509_get_default_cert_file_env(), place, 0);
      return;
    }
  }
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace watchdog::monitor
