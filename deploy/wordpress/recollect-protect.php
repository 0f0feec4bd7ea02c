<?php
/**
 * Plugin Name: Recollect protect
 * Description: Puts the blocks of `recollect protect apply` into the pages of this site.
 * License: MIT
 *
 * WordPress: copy this file into wp-content/mu-plugins/ and set the place of the file of blocks in wp-config.php:
 *
 *     define('RECOLLECT_BLOCKS', '/srv/recollect/site.blocks');
 *
 * Other PHP sites: auto_prepend_file = "/srv/recollect/recollect-protect.php" and the environment variable
 * RECOLLECT_BLOCKS. The file of blocks must lie outside of the folder that the web server shows. It is made, and made
 * again after changes, by
 *
 *     recollect protect apply paths.txt --files code=app/ --key site.key -o /srv/recollect/site.blocks
 *
 * Needs PDO with SQLite. A page whose block cannot be read is sent as it is.
 */

function recollect_path($target)
{
    $parts = parse_url('http://x/' . ltrim($target, '/'));
    $path = ($parts['path'] ?? '/') . (isset($parts['query']) && $parts['query'] !== '' ? '?' . $parts['query'] : '');
    $path = preg_replace_callback('#[^A-Za-z0-9/:@!$&\'()*+,;=~\-._%?]#', function ($match) {
        return rawurlencode($match[0]);
    }, $path);
    return preg_replace_callback('/%[0-9a-fA-F]{2}/', function ($match) {
        return strtoupper($match[0]);
    }, $path);
}

/** The number of the spare block for a path that is not listed: the first 8 bytes of its SHA-256, modulo the number. */
function recollect_spare($path, $count)
{
    $rest = 0;
    foreach (unpack('C8', hash('sha256', $path, true)) as $byte) {
        $rest = ($rest * 256 + $byte) % $count;
    }
    return $rest;
}

function recollect_carrier($path)
{
    $file = defined('RECOLLECT_BLOCKS') ? RECOLLECT_BLOCKS : getenv('RECOLLECT_BLOCKS');
    if (!$file || !is_readable($file)) {
        return '';
    }
    try {
        $database = new PDO('sqlite:' . $file, null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => PDO::SQLITE_OPEN_READONLY]);
        $meta = $database->query('SELECT name, value FROM meta')->fetchAll(PDO::FETCH_KEY_PAIR);
        if (($meta['format'] ?? '') !== '1') {
            return '';
        }
        $query = $database->prepare('SELECT text FROM page WHERE path = ?');
        $query->execute([$path]);
        $text = $query->fetchColumn();
        if ($text === false) {
            $count = (int) $database->query('SELECT count(*) FROM spare')->fetchColumn();
            $query = $database->prepare('SELECT text FROM spare WHERE number = ?');
            $query->execute([recollect_spare($path, max(1, $count))]);
            $text = $query->fetchColumn();
        }
    } catch (PDOException $error) {
        return '';
    }
    if (!is_string($text)) {
        return '';
    }
    if (($meta['style'] ?? '') === 'comment') {
        return "<!-- BEGIN_FILE_RECOVERY\n" . $text . "\nEND_FILE_RECOVERY -->";
    }
    return "<script type=\"application/vnd.recollect\">\n" . $text . "\n</script>";
}

function recollect_insert($page)
{
    $status = http_response_code();
    $at = strripos($page, '</body>');
    if ($at === false || ($status !== false && $status !== 200)) {
        return $page;
    }
    foreach (headers_list() as $header) {
        if (preg_match('#^content-(?:encoding|disposition)\s*:#i', $header)
            || (preg_match('#^content-type\s*:\s*(\S+)#i', $header, $match) && stripos($match[1], 'text/html') !== 0)) {
            return $page;
        }
    }
    $carrier = recollect_carrier(recollect_path($_SERVER['REQUEST_URI'] ?? '/'));
    return substr($page, 0, $at) . $carrier . substr($page, $at);
}

function recollect_start()
{
    $method = $_SERVER['REQUEST_METHOD'] ?? 'GET';
    if ($method === 'GET' || $method === 'HEAD') {
        ob_start('recollect_insert');
    }
}

if (function_exists('add_action')) {
    add_action('template_redirect', 'recollect_start', 0); // pages for visitors only, not the administration
} else {
    recollect_start();
}
