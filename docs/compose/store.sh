# Redis with the password $PASSWORD, which its arguments would show to every process. Nothing is stored on disk: all of it is
# copied from PostgreSQL or starts anew.
set -eu
settings="port ${PORT:-6379}
requirepass $PASSWORD
save \"\"
appendonly no
maxmemory 512mb
maxmemory-policy noeviction"
unset PASSWORD
exec redis-server - <<END
$settings
END
