# RPM packages of the same components. They carry the static program, because the libraries of Debian have other names
# elsewhere. `cpack -G RPM` needs rpmbuild; scripts/release runs it.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_GROUP Unspecified)
set(CPACK_RPM_PACKAGE_VENDOR "The libwatchdog authors")
set(CPACK_RPM_COMPRESSION_TYPE xz)
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
# Folders of other packages.
foreach(folder lib64/cmake lib64/pkgconfig lib/systemd lib/systemd/system lib/systemd/user libexec share/bash-completion
        share/bash-completion/completions share/fish share/fish/vendor_completions.d share/licenses share/man
        share/man/man1 share/zsh share/zsh/site-functions)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${folder})
endforeach()
# Nobody's machine, clock or name comes into a package, and rpmbuild changes no file.
string(CONCAT CPACK_RPM_SPEC_MORE_DEFINE
       "%global _buildhost localhost\n%global use_source_date_epoch_as_buildtime 1\n"
       "%global clamp_mtime_to_source_date_epoch 1\n%global __os_install_post %{nil}\n"
       "%global debug_package %{nil}\n%global _build_id_links none")
set(rpm_scripts ${PROJECT_SOURCE_DIR}/packaging/rpm)

set(CPACK_RPM_MONITOR_PACKAGE_NAME watchdog-monitor)
set(CPACK_RPM_MONITOR_PACKAGE_SUMMARY "Progress watchdog for autonomous agents")
string(REGEX REPLACE "^[^\n]*\n" "" CPACK_RPM_MONITOR_PACKAGE_DESCRIPTION "${CPACK_DEBIAN_MONITOR_DESCRIPTION}")
set(CPACK_RPM_MONITOR_POST_INSTALL_SCRIPT_FILE ${rpm_scripts}/post)
set(CPACK_RPM_MONITOR_PRE_UNINSTALL_SCRIPT_FILE ${rpm_scripts}/preun)
set(CPACK_RPM_MONITOR_POST_UNINSTALL_SCRIPT_FILE ${rpm_scripts}/postun)

set(CPACK_RPM_LIB_PACKAGE_NAME libwatchdog0)
set(CPACK_RPM_LIB_PACKAGE_SUMMARY "Reports of an agent's progress, for watchdog-monitor")
string(REGEX REPLACE "^[^\n]*\n" "" CPACK_RPM_LIB_PACKAGE_DESCRIPTION "${CPACK_DEBIAN_LIB_DESCRIPTION}")
set(CPACK_RPM_LIB_POST_INSTALL_SCRIPT_FILE ${rpm_scripts}/ldconfig)
set(CPACK_RPM_LIB_POST_UNINSTALL_SCRIPT_FILE ${rpm_scripts}/ldconfig)

set(CPACK_RPM_DEV_PACKAGE_NAME libwatchdog-devel)
set(CPACK_RPM_DEV_PACKAGE_SUMMARY "Reports of an agent's progress, development files")
string(REGEX REPLACE "^[^\n]*\n" "" CPACK_RPM_DEV_PACKAGE_DESCRIPTION "${CPACK_DEBIAN_DEV_DESCRIPTION}")
set(CPACK_RPM_DEV_PACKAGE_REQUIRES
    "libwatchdog0 = ${CPACK_PACKAGE_VERSION}, pkgconfig(sqlite3), pkgconfig(openssl), pkgconfig(re2)")
