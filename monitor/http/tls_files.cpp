#include "http/tls_files.h"

namespace watchdog::monitor {

Result<void> use_files(boost::asio::ssl::context& context, const TlsFiles& files) {
  boost::system::error_code error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.use_certificate_chain_file(files.certificate.string(), error);
  if (error) {
    return Error{
        ErrorCode::invalid,
        "the certificate " + files.certificate.string() + " cannot be used: " + error.message(),
        "tls_cert"};
  }
  context.use_private_key_file(files.key.string(), boost::asio::ssl::context::pem, error);
  if (error) {
    return Error{ErrorCode::invalid,
                 "the key " + files.key.string() + " cannot be used: " + error.message(),
                 "tls_key"};
  }
  return {};
}

}  // namespace watchdog::monitor
