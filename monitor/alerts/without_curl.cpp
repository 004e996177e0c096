// libcurl for the static program, which cannot have the real one: Debian's static libcurl needs
// Kerberos and LDAP, and neither has a static library there. `send_mail` then says that this
// program sends no mail. No other target compiles this file.
#include <curl/curl.h>

// The names are libcurl's, as in its header.
#undef curl_easy_setopt
#undef curl_easy_getinfo
extern "C" {
CURLcode curl_global_init(long /*flags*/) {
  return CURLE_FAILED_INIT;
}
CURL* curl_easy_init(void) {
  return nullptr;
}
CURLcode curl_easy_setopt(CURL* /*curl*/, CURLoption /*option*/, ...) {
  return CURLE_FAILED_INIT;
}
CURLcode curl_easy_perform(CURL* /*curl*/) {
  return CURLE_FAILED_INIT;
}
void curl_easy_cleanup(CURL* /*curl*/) {}
CURLcode curl_easy_getinfo(CURL* /*curl*/, CURLINFO /*info*/, ...) {
  return CURLE_FAILED_INIT;
}
const char* curl_easy_strerror(CURLcode /*code*/) {
  return "libcurl is missing";
}
curl_slist* curl_slist_append(curl_slist* list, const char* /*text*/) {
  return list;
}
void curl_slist_free_all(curl_slist* /*list*/) {}
}
