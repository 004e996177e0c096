/// \file
/// The table of the shapes of secrets, each with its source. "gitleaks NAME" is a rule in
/// config/gitleaks.toml of github.com/gitleaks/gitleaks, "trufflehog NAME" a folder in
/// pkg/detectors of github.com/trufflesecurity/trufflehog.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace watchdog {

enum class SecretKind : std::uint8_t {
  // The value of a name.
  chosen,     ///< Anything: people choose it.
  generated,  ///< Made by a program: these names mean other things as well.
  cookie,     ///< A list of `name=value`.
  header,     ///< A scheme and what follows it.
  query,      ///< Long, and in the query of a URL.
  // After a flag of a command:
  attached,  ///< Without a blank: `-psecret`.
  argument,  ///< With or without one.
  pair,      ///< `user:secret`.
  jar,       ///< A list of `name=value`.
  // Recognisable by itself.
  token,   ///< `text`, and `after` letters or more.
  within,  ///< `before` letters, `text`, and `after` letters or more.
  // By rules of their own.
  discord,
  identified,
  netrc,
  pem,
  putty,
  scheme,
  telegram,
  url,
  web_token,
};

/// The characters of a token besides letters and digits. A plain value.
struct Alphabet {
  std::string_view signs;
  bool is_hex = false;   ///< Of the letters only `a` to `f`.
  bool is_caps = false;  ///< Only capitals.
};

/// One row. A plain value.
struct SecretShape {
  SecretKind kind{};
  /// The beginning of a possible secret. In a name `?` is one of `_`, `-`, a blank or nothing, and
  /// `|` the begin of a word. A flag's blank is whatever may be before a word of a command.
  std::string_view text;
  /// Of a flag: the program's name or the begin of it, and what else must be between.
  std::string_view command{};
  Alphabet alphabet{};
  std::uint8_t before = 0;
  std::uint8_t after = 0;
  std::string_view source{};
};

namespace shapes {

inline constexpr Alphabet alnum{""}, url{"_-"}, url_dot{"_-."}, alnum_dot{"."}, base64{"_-.+/="},
    azure{"_-.~"}, slack{"-."}, teams{"-@/"}, hex{"", true}, hex_dash{"-", true},
    caps{"", false, true};

constexpr SecretShape token(std::string_view text, Alphabet alphabet, std::uint8_t after,
                            std::string_view source) {
  return {SecretKind::token, text, {}, alphabet, 0, after, source};
}
constexpr SecretShape within(std::uint8_t before, std::string_view text, std::uint8_t after,
                             Alphabet alphabet, std::string_view source) {
  return {SecretKind::within, text, {}, alphabet, before, after, source};
}
constexpr SecretShape name(std::string_view text, SecretKind kind, std::string_view source) {
  return {kind, text, {}, {}, 0, 0, source};
}
constexpr SecretShape flag(std::string_view command, std::string_view text, SecretKind kind,
                           std::string_view source) {
  return {kind, text, command, {}, 0, 0, source};
}

// clang-format off: a row is a line
inline constexpr std::array all{
    // Names. They may end a longer one: DB_PASSWORD, x-api-key, clientSecret.
    name("password", SecretKind::chosen,
         "https://cheatsheetseries.owasp.org/cheatsheets/Logging_Cheat_Sheet.html"),
    name("passwd", SecretKind::chosen,
         "https://cheatsheetseries.owasp.org/cheatsheets/Logging_Cheat_Sheet.html"),
    name("passphrase", SecretKind::chosen,
         "https://cheatsheetseries.owasp.org/cheatsheets/Logging_Cheat_Sheet.html"),
    name("passcode", SecretKind::chosen,
         "https://cheatsheetseries.owasp.org/cheatsheets/Logging_Cheat_Sheet.html"),
    name("pwd", SecretKind::chosen,
         "https://learn.microsoft.com/dotnet/framework/data/adonet/connection-string-syntax"),
    name("|pass", SecretKind::chosen, "https://hub.docker.com/_/rabbitmq"),
    name("secret?key?base", SecretKind::chosen, "https://guides.rubyonrails.org/security.html"),
    name("secret?key", SecretKind::chosen,
         "https://docs.djangoproject.com/en/stable/ref/settings/#secret-key"),
    name("secret", SecretKind::chosen, "https://cwe.mitre.org/data/definitions/532.html"),
    name("api?key", SecretKind::chosen,
         "https://swagger.io/docs/specification/v3_0/authentication/api-keys/"),
    name("access?key", SecretKind::chosen,
         "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html"),
    name("account?key", SecretKind::chosen,
         "https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string"),
    name("private?key", SecretKind::chosen, "https://cwe.mitre.org/data/definitions/532.html"),
    name("signing?key", SecretKind::chosen, "https://cwe.mitre.org/data/definitions/532.html"),
    name("encryption?key", SecretKind::chosen, "https://cwe.mitre.org/data/definitions/532.html"),
    name("master?key", SecretKind::chosen, "https://guides.rubyonrails.org/security.html"),
    name("subscription?key", SecretKind::chosen,
         "https://learn.microsoft.com/azure/api-management/api-management-subscriptions"),
    name("token", SecretKind::generated, "https://www.rfc-editor.org/rfc/rfc6750"),
    name("|auth", SecretKind::generated, "https://docs.npmjs.com/cli/configuring-npm/npmrc"),
    name("credentials", SecretKind::generated, "https://cwe.mitre.org/data/definitions/532.html"),
    name("credential", SecretKind::generated, "https://cwe.mitre.org/data/definitions/532.html"),
    name("cookie", SecretKind::cookie, "https://www.rfc-editor.org/rfc/rfc6265"),
    name("authorization", SecretKind::header,
         "https://www.rfc-editor.org/rfc/rfc9110#section-11.6.2"),
    name("|sig", SecretKind::query,
         "https://learn.microsoft.com/rest/api/storageservices/create-service-sas"),
    name("signature", SecretKind::query,
         "https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html"),
    // Flags of single commands.
    flag("mysql", " -p", SecretKind::attached,
         "https://dev.mysql.com/doc/refman/8.4/en/password-security-user.html"),
    flag("mariadb", " -p", SecretKind::attached,
         "https://mariadb.com/kb/en/mariadb-command-line-client/"),
    flag("7z", " -p", SecretKind::attached,
         "https://7-zip.opensource.jp/chm/cmdline/switches/password.htm"),
    flag("sshpass", " -p", SecretKind::argument, "https://manpages.debian.org/sshpass"),
    flag("docker login", " -p", SecretKind::argument,
         "https://docs.docker.com/reference/cli/docker/login/"),
    flag("podman login", " -p", SecretKind::argument,
         "https://docs.podman.io/en/latest/markdown/podman-login.1.html"),
    flag("helm login", " -p", SecretKind::argument,
         "https://helm.sh/docs/helm/helm_registry_login/"),
    flag("redis-cli", " -a", SecretKind::argument,
         "https://redis.io/docs/latest/develop/tools/cli/"),
    flag("ldap", " -w", SecretKind::argument, "https://manpages.debian.org/ldapsearch"),
    flag("zip", " -P", SecretKind::argument, "https://manpages.debian.org/zip"),
    flag("curl", " -u", SecretKind::pair, "https://curl.se/docs/manpage.html#-u"),
    flag("curl", " --user", SecretKind::pair, "https://curl.se/docs/manpage.html#-u"),
    flag("curl", " -U", SecretKind::pair, "https://curl.se/docs/manpage.html#-U"),
    flag("curl", " --proxy-user", SecretKind::pair, "https://curl.se/docs/manpage.html#-U"),
    flag("curl", " -b", SecretKind::jar, "https://curl.se/docs/manpage.html#-b"),
    // Files of their own.
    name("machine", SecretKind::netrc,
         "https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html"),
    name("default", SecretKind::netrc,
         "https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html"),
    name("-----", SecretKind::pem, "https://www.rfc-editor.org/rfc/rfc7468"),
    name("Private-Lines:", SecretKind::putty,
         "https://tartarus.org/~simon/putty-snapshots/htmldoc/AppendixC.html"),
    name("://", SecretKind::url, "https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1"),
    name("eyJ", SecretKind::web_token, "https://www.rfc-editor.org/rfc/rfc7519"),
    name("bearer ", SecretKind::scheme, "https://www.rfc-editor.org/rfc/rfc6750"),
    name("basic ", SecretKind::scheme, "https://www.rfc-editor.org/rfc/rfc7617"),
    name("identified by ", SecretKind::identified,
         "https://dev.mysql.com/doc/refman/8.4/en/create-user.html"),
    // Models.
    token("sk-", url, 16, "gitleaks openai-api-key"),
    token("nvapi-", url, 20, "trufflehog nvapi"),
    token("pplx-", alnum, 24, "gitleaks perplexity-api-key"),
    token("r8_", alnum, 24, "trufflehog replicate"),
    token("csk-", alnum, 24, "https://inference-docs.cerebras.ai/quickstart"),
    token("fw_", alnum, 20, "https://docs.fireworks.ai/getting-started/quickstart"),
    token("tvly-", url, 16, "https://docs.tavily.com/documentation/quickstart"),
    token("hf_", alnum, 20, "gitleaks huggingface-access-token"),
    token("api_org_", alnum, 30, "gitleaks huggingface-organization-api-token"),
    token("gsk_", alnum, 20, "trufflehog groq"),
    token("xai-", url, 20, "trufflehog xai"),
    token("sk_", hex, 30, "trufflehog elevenlabs"),
    token("lsv2_pt_", url, 30, "trufflehog langsmith"),
    token("lsv2_sk_", url, 30, "trufflehog langsmith"),
    token("pcsk_", url, 30, "trufflehog pinecone"),
    token("apify_api_", alnum, 30, "trufflehog apify"),
    // Code, packages, builds.
    token("ghp_", alnum, 20, "gitleaks github-pat"),
    token("gho_", alnum, 20, "gitleaks github-oauth"),
    token("ghu_", alnum, 20, "gitleaks github-app-token"),
    token("ghs_", alnum, 20, "gitleaks github-app-token"),
    token("ghr_", alnum, 20, "gitleaks github-refresh-token"),
    token("github_pat_", url, 20, "gitleaks github-fine-grained-pat"),
    token("glpat-", base64, 16, "gitleaks gitlab-pat"),
    token("gloas-", base64, 16, "gitleaks gitlab-oauth-app-secret"),
    token("gldt-", base64, 16, "gitleaks gitlab-deploy-token"),
    token("glrt-", base64, 16, "gitleaks gitlab-runner-authentication-token"),
    token("glcbt-", base64, 16, "gitleaks gitlab-cicd-job-token"),
    token("glptt-", base64, 16, "gitleaks gitlab-ptt"),
    token("glft-", base64, 16, "gitleaks gitlab-feed-token"),
    token("glimt-", base64, 16, "gitleaks gitlab-incoming-mail-token"),
    token("glagent-", base64, 16, "gitleaks gitlab-kubernetes-agent-token"),
    token("glsoat-", base64, 16, "gitleaks gitlab-scim-token"),
    token("glffct-", base64, 16, "gitleaks gitlab-feature-flag-client-token"),
    token("GR1348941", base64, 16, "gitleaks gitlab-rrt"),
    token("npm_", alnum, 30, "gitleaks npm-access-token"),
    token("pypi-", url, 30, "gitleaks pypi-upload-token"),
    token("rubygems_", hex, 30, "gitleaks rubygems-api-token"),
    token("CLOJARS_", alnum, 30, "gitleaks clojars-api-token"),
    token("dckr_pat_", url, 20, "trufflehog dockerhub"),
    token("dckr_oat_", url, 20, "https://docs.docker.com/enterprise/security/access-tokens/"),
    token("ATATT", base64, 30, "gitleaks atlassian-api-token"),
    token("ATCTT", base64, 30, "trufflehog atlassian"),
    token("ATBB", alnum, 24, "https://support.atlassian.com/bitbucket-cloud/docs/app-passwords/"),
    token("sgp_", url, 30, "gitleaks sourcegraph-access-token"),
    token("CCIPAT_", url, 30, "trufflehog circleci"),
    token("bkua_", hex, 30, "trufflehog buildkite"),
    token("AKCp", alnum, 30, "gitleaks artifactory-api-key"),
    token("cmVmd", alnum, 30, "gitleaks artifactory-reference-token"),
    token("PMAK-", url, 30, "gitleaks postman-api-token"),
    token("sntrys_", base64, 30, "gitleaks sentry-org-token"),
    token("sntryu_", hex, 30, "gitleaks sentry-user-token"),
    token("pnu_", alnum, 30, "gitleaks prefect-api-token"),
    token("API-", caps, 26, "gitleaks octopus-deploy-api-key"),
    // Clouds.
    token("AKIA", caps, 16, "gitleaks aws-access-token"),
    token("ASIA", caps, 16, "gitleaks aws-access-token"),
    token("ABIA", caps, 16, "gitleaks aws-access-token"),
    token("ACCA", caps, 16, "gitleaks aws-access-token"),
    token("ABSK", base64, 60, "gitleaks aws-amazon-bedrock-api-key-long-lived"),
    token("AIza", url, 30, "gitleaks gcp-api-key"),
    token("GOCSPX-", url, 16, "https://developers.google.com/identity/protocols/oauth2"),
    token("ya29.", url, 20, "trufflehog googleoauth2"),
    token("1//0", url, 30, "https://developers.google.com/identity/protocols/oauth2"),
    within(4, "Q~", 31, azure, "gitleaks azure-ad-client-secret"),
    within(44, "AzFu", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(42, "AzSe", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(33, "AzCa", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(76, "+ASt", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(76, "ACDb", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(76, "+ABa", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(76, "+AMC", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(33, "+ASb", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(33, "+ARm", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(33, "+AEh", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(33, "AIoT", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(76, "APIM", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(33, "AZEG", 4, base64, "https://github.com/microsoft/security-utilities"),
    within(52, "JQQJ99", 20, alnum, "https://github.com/microsoft/security-utilities"),
    within(76, "AZDO", 4, alnum, "https://github.com/microsoft/security-utilities"),
    token("dop_v1_", hex, 30, "gitleaks digitalocean-pat"),
    token("doo_v1_", hex, 30, "gitleaks digitalocean-access-token"),
    token("dor_v1_", hex, 30, "gitleaks digitalocean-refresh-token"),
    token("LTAI", alnum, 16, "gitleaks alibaba-access-key-id"),
    token("AKID", alnum, 30, "https://www.tencentcloud.com/document/product/598/32675"),
    token("v1.0-", hex_dash, 100, "gitleaks cloudflare-origin-ca-key"),
    token("fm2_", base64, 30, "gitleaks flyio-access-token"),
    token("fo1_", url, 30, "gitleaks flyio-access-token"),
    token("HRKU-", url, 30, "gitleaks heroku-api-key-v2"),
    token("nfp_", alnum, 30, "trufflehog netlify"),
    token("pul-", hex, 30, "gitleaks pulumi-api-token"),
    token("tskey-", url, 16, "trufflehog tailscale"),
    token("sha256~", url, 40, "gitleaks openshift-user-token"),
    within(14, ".atlasv1.", 60, url, "gitleaks hashicorp-tf-api-token"),
    token("hvs.", url, 20, "gitleaks vault-service-token"),
    token("hvb.", url, 20, "gitleaks vault-batch-token"),
    token("hvr.", url, 20, "https://developer.hashicorp.com/vault/docs/concepts/tokens"),
    token("dp.pt.", alnum, 30, "gitleaks doppler-api-token"),
    token("dp.st.", url_dot, 30, "https://docs.doppler.com/docs/service-tokens"),
    token("ops_eyJ", base64, 30, "gitleaks 1password-service-account-token"),
    token("AGE-SECRET-KEY-1", caps, 30, "gitleaks age-secret-key"),
    // Data, monitoring, work.
    token("dapi", hex, 32, "gitleaks databricks-api-token"),
    token("sbp_", hex, 30, "trufflehog supabasetoken"),
    token("sb_secret_", url, 20, "https://supabase.com/docs/guides/api/api-keys"),
    token("pscale_tkn_", url, 30, "gitleaks planetscale-api-token"),
    token("pscale_pw_", url, 30, "gitleaks planetscale-password"),
    token("pscale_oauth_", url, 30, "gitleaks planetscale-oauth-token"),
    token("glsa_", url, 30, "gitleaks grafana-service-account-token"),
    token("glc_", base64, 30, "gitleaks grafana-cloud-api-token"),
    token("NRAK-", alnum, 20, "gitleaks new-relic-user-api-key"),
    token("dt0c01.", url_dot, 30, "gitleaks dynatrace-api-token"),
    token("phx_", url, 30, "trufflehog posthog"),
    token("ntn_", alnum, 30, "gitleaks notion-api-token"),
    token("secret_", alnum, 30, "trufflehog notion"),
    token("lin_api_", alnum, 30, "gitleaks linear-api-key"),
    token("lin_oauth_", alnum, 30, "https://linear.app/developers/oauth-2-0-authentication"),
    token("figd_", url, 30, "trufflehog figmapersonalaccesstoken"),
    token("pat", alnum_dot, 70, "gitleaks airtable-personnal-access-token"),
    token("fio-u-", url, 30, "gitleaks frameio-api-token"),
    token("rdme_", alnum, 30, "gitleaks readme-api-token"),
    token("tfp_", url_dot, 30, "gitleaks typeform-api-token"),
    // Shops, payments, messages.
    token("sk_live_", alnum, 10, "gitleaks stripe-access-token"),
    token("sk_test_", alnum, 10, "gitleaks stripe-access-token"),
    token("rk_live_", alnum, 10, "gitleaks stripe-access-token"),
    token("rk_test_", alnum, 10, "gitleaks stripe-access-token"),
    token("whsec_", base64, 16, "https://docs.stripe.com/webhooks#verify-official-libraries"),
    token("shpat_", hex, 32, "gitleaks shopify-access-token"),
    token("shpca_", hex, 32, "gitleaks shopify-custom-access-token"),
    token("shppa_", hex, 32, "gitleaks shopify-private-app-access-token"),
    token("shpss_", hex, 32, "gitleaks shopify-shared-secret"),
    token("sq0atp-", url, 20, "gitleaks square-access-token"),
    token("sq0csp-", url, 20, "https://developer.squareup.com/docs/build-basics/access-tokens"),
    token("shippo_live_", hex, 40, "gitleaks shippo-api-token"),
    token("shippo_test_", hex, 40, "gitleaks shippo-api-token"),
    token("EZAK", alnum, 30, "gitleaks easypost-api-token"),
    token("EZTK", alnum, 30, "gitleaks easypost-test-api-token"),
    token("duffel_live_", url, 30, "gitleaks duffel-api-token"),
    token("duffel_test_", url, 30, "gitleaks duffel-api-token"),
    token("FLWSECK_TEST-", url, 12, "gitleaks flutterwave-encryption-key"),
    token("EAAC", alnum, 30, "gitleaks facebook-page-access-token"),
    token("EAAM", alnum, 30, "gitleaks facebook-page-access-token"),
    token("xoxa-", slack, 10, "gitleaks slack-legacy-workspace-token"),
    token("xoxb-", slack, 10, "gitleaks slack-bot-token"),
    token("xoxc-", slack, 10, "https://api.slack.com/concepts/token-types"),
    token("xoxd-", slack, 10, "https://api.slack.com/concepts/token-types"),
    token("xoxe-", slack, 10, "gitleaks slack-config-refresh-token"),
    token("xoxo-", slack, 10, "gitleaks slack-legacy-token"),
    token("xoxp-", slack, 10, "gitleaks slack-user-token"),
    token("xoxr-", slack, 10, "gitleaks slack-legacy-workspace-token"),
    token("xoxs-", slack, 10, "gitleaks slack-legacy-token"),
    token("xoxe.xox", slack, 10, "gitleaks slack-config-access-token"),
    token("xapp-", slack, 10, "gitleaks slack-app-token"),
    token("hooks.slack.com/services/", base64, 16, "gitleaks slack-webhook-url"),
    token("hooks.slack.com/workflows/", base64, 16, "gitleaks slack-webhook-url"),
    token("hooks.slack.com/triggers/", base64, 16, "gitleaks slack-webhook-url"),
    token("discord.com/api/webhooks/", base64, 30,
          "https://discord.com/developers/docs/resources/webhook"),
    token("discordapp.com/api/webhooks/", base64, 30,
          "https://discord.com/developers/docs/resources/webhook"),
    name("M", SecretKind::discord, "https://discord.com/developers/docs/reference#authentication"),
    name(":AA", SecretKind::telegram, "trufflehog telegrambottoken"),
    token("SK", hex, 32, "gitleaks twilio-api-key"),
    token("webhook.office.com/webhookb2/", teams, 36, "gitleaks microsoft-teams-webhook"),
    token("SG.", url_dot, 30, "gitleaks sendgrid-api-token"),
    token("xkeysib-", url, 30, "gitleaks sendinblue-api-token"),
    within(32, "-us", 1, hex, "gitleaks mailchimp-api-key"),
    token("secret-token:", base64, 8, "https://www.rfc-editor.org/rfc/rfc8959"),
};
// clang-format on

}  // namespace shapes

}  // namespace watchdog
