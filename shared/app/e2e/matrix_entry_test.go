package e2e_test

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// entry describes how to call an operation so that it succeeds for a caller with permission.
type entry struct {
	name    func(m *matrix, owner *testkit.Client) string // creates what {id} or {key} in the path names
	shared  bool                                          // the name is not an id of the tenant: it exists everywhere
	query   string
	body    func(m *matrix, c *testkit.Client) any
	status  int // on success; 0 means 200
	foreign int // for another tenant's admin, if neither 404 (with an id) nor the own admin's status
}

func text(s string) func(*matrix, *testkit.Client) string {
	return func(*matrix, *testkit.Client) string { return s }
}

func value(v any) func(*matrix, *testkit.Client) any {
	return func(*matrix, *testkit.Client) any { return v }
}

type object = map[string]any

// operations has an entry for every operation.
var operations = map[string]entry{
	"setupStatus":        {},
	"setupInitialize":    {body: value(object{"username": "first", "email": "first@example.org", "password": testkit.Password}), status: 400},
	"setupSettings":      {body: value(object{"settings": object{"exports.max_per_user": "11"}})},
	"listOidcProviders":  {},
	"startOidcLogin":     {name: text("none"), shared: true, body: value(object{}), status: 400}, // there is no provider
	"finishOidcLogin":    {name: text("none"), shared: true, query: "code=a&state=b", status: 400},
	"login":              {body: (*matrix).login},
	"refresh":            {body: (*matrix).refresh},
	"logout":             {body: value(object{})},
	"me":                 {},
	"streamAccess":       {},
	"currentUser":        {},
	"register":           {body: (*matrix).newcomer, status: 201},
	"verifyEmail":        {body: value(object{"token": "unknown"}), status: 400},
	"resendVerification": {body: value(object{"email": "nobody@example.org"})},

	"listUsers":  {},
	"createUser": {body: (*matrix).newcomer, status: 201},
	"getUser":    {name: (*matrix).user},
	"updateUser": {name: (*matrix).user, body: value(object{"role": "maintainer"})},
	"patchUser":  {name: (*matrix).user, body: value(object{"isActive": false})},
	"deleteUser": {name: (*matrix).user, status: 204},

	"listApiKeys":  {},
	"createApiKey": {body: value(object{"name": "k"}), status: 201},
	"getApiKey":    {name: (*matrix).key},
	"updateApiKey": {name: (*matrix).key, body: value(object{"name": "k2"})},
	"patchApiKey":  {name: (*matrix).key, body: value(object{"isActive": false})},
	"deleteApiKey": {name: (*matrix).key, status: 204},

	"listPreferences": {},
	"getPreference":   {name: (*matrix).preference, shared: true},
	"setPreference":   {name: (*matrix).preference, shared: true, body: value(object{"value": 1})},
	"setPreferences":  {body: value(object{"preferences": object{"reader.theme": "dark"}})},
	"resetPreference": {name: (*matrix).preference, shared: true},

	"listSettings":       {},
	"updateSettings":     {body: value(object{"settings": object{"application.name": "Geheim"}})},
	"getSetting":         {name: text("application.name"), shared: true},
	"updateSetting":      {name: text("application.name"), shared: true, body: value(object{"value": "Geheim"})},
	"resetSetting":       {name: text("scanner.batch_size"), shared: true},
	"listSettingHistory": {name: text("application.name"), shared: true},
	"getPublicSettings":  {},
	"getBranding":        {},

	"listDrives":       {},
	"browseFilesystem": {query: "path=/books", foreign: 400},
	"getMetrics":       {},
	"getInventory":     {},
	"getInfo":          {},
	"getObservability": {},
	"sendTraces":       {body: value(object{})},
	"sendMetrics":      {body: value(object{})},

	"startOrphanCleanup":   {},
	"deleteOrphans":        {},
	"getOrphanStats":       {query: "includeFiles=true"},
	"getPdfCache":          {},
	"getPdfCachePages":     {},
	"getPdfHandles":        {},
	"closePdfHandles":      {},
	"closePdfHandle":       {name: (*matrix).theBook},
	"deletePdfPages":       {},
	"deletePdfCache":       {},
	"startPdfPageCleanup":  {},
	"startPdfCacheCleanup": {},

	"getTaskMetrics":        {},
	"getTaskMetricsHistory": {query: "days=30&granularity=day&taskType=scan_library"},
	"cleanUpTaskMetrics":    {},
	"deleteTaskMetrics":     {},

	"listTasks":    {},
	"getTaskStats": {},
	"purgeTasks":   {},
	"createTask":   {body: (*matrix).newTask, foreign: 400},
	"getTask":      {name: (*matrix).pending},
	"cancelTask":   {name: (*matrix).pending},
	"retryTask":    {name: (*matrix).failed},
	"unlockTask":   {name: (*matrix).running},
	"nukeTasks":    {},

	"listLibraries":   {},
	"getLibrary":      {name: (*matrix).library},
	"createLibrary":   {body: (*matrix).newLibrary, status: 201, foreign: 400},
	"putLibrary":      {name: (*matrix).library, body: value(object{"description": "Geheim"})},
	"patchLibrary":    {name: (*matrix).library, body: value(object{"description": "Geheim"})},
	"deleteLibrary":   {name: (*matrix).library, status: 204},
	"previewScan":     {body: value(object{"path": "/books"}), foreign: 400},
	"startScan":       {name: (*matrix).library},
	"getScanStatus":   {name: (*matrix).scanning},
	"cancelScan":      {name: (*matrix).scanning, status: 204},
	"listActiveScans": {},
	"confirmScan":     {name: (*matrix).heldScan},
	"reprocessTitles": {name: (*matrix).library, body: value(object{"dryRun": true})},

	"analyzeLibrary":            {name: (*matrix).library},
	"analyzeNewBooksOfLibrary":  {name: (*matrix).library},
	"makeBookCoversOfLibrary":   {name: (*matrix).library, body: value(object{"force": true})},
	"makeSeriesCoversOfLibrary": {name: (*matrix).library, body: value(object{"force": true})},

	"scanSeries":   {name: (*matrix).newSeries},
	"purgeLibrary": {name: (*matrix).library},
	"purgeSeries":  {name: (*matrix).newSeries},

	"beginUploads":   {name: (*matrix).bucketLibrary, body: value(object{"files": []any{object{"path": "Geheim/2.cbz", "size": 10}}}), status: 201},
	"listUploads":    {name: (*matrix).bucketLibrary},
	"getUpload":      {name: (*matrix).upload},
	"completeUpload": {name: (*matrix).upload, status: 409}, // no part has arrived
	"abortUpload":    {name: (*matrix).upload, status: 204},

	"listSeries":                {},
	"filterSeries":              {body: value(object{"fullTextSearch": "gehei"})},
	"searchSeries":              {body: value(object{"query": "gehei"})},
	"listSeriesInProgress":      {},
	"listSeriesRecentlyAdded":   {},
	"listSeriesRecentlyUpdated": {},
	"getSeries":                 {name: (*matrix).theSeries},
	"getFullSeries":             {name: (*matrix).theSeries},
	"listFullSeries":            {},
	"listSeriesExternalIndex":   {},
	"listSeriesBooks":           {name: (*matrix).theSeries},
	"analyzeSeries":             {name: (*matrix).theSeries},
	"analyzeNewBooks":           {name: (*matrix).theSeries},
	"renumberSeries":            {name: (*matrix).theSeries},
	"reprocessSeriesTitle":      {name: (*matrix).theSeries},
	"analyzeSeveralSeries":      {body: (*matrix).severalSeries},
	"renumberSeveralSeries":     {body: (*matrix).severalSeries},
	"reprocessSeveralTitles":    {body: (*matrix).severalSeries},
	"reprocessChosenTitles":     {body: (*matrix).severalSeries},
	"makeSeriesCover":           {name: (*matrix).theSeries, body: value(object{})},
	"makeSeriesCovers":          {body: (*matrix).severalSeries},
	"makeSeveralSeriesCovers":   {body: (*matrix).severalSeries},
	"makeBookCoversOfSeries":    {body: (*matrix).severalSeries},
	"listLibrarySeries":         {name: (*matrix).library},
	"readAllSeries":             {body: (*matrix).severalSeries},
	"unreadAllSeries":           {body: (*matrix).severalSeries},
	"readSeries":                {name: (*matrix).theSeries},
	"unreadSeries":              {name: (*matrix).theSeries},
	"patchSeries":               {name: (*matrix).theSeries, body: value(object{"title": "S"})},
	"getSeriesMetadata":         {name: (*matrix).theSeries},
	"patchSeriesMetadata":       {name: (*matrix).theSeries, body: value(object{"summary": "s"})},
	"putSeriesMetadata":         {name: (*matrix).theSeries, body: value(object{"summary": "s"})},
	"resetSeriesMetadata":       {name: (*matrix).theSeries},
	"resetAllSeriesMetadata":    {body: value(object{"seriesIds": []string{}})},
	"uploadSeriesCover":         {name: (*matrix).theSeries, body: value(testkit.Form{Member: "file", File: aPicture}), status: 201},
	"listSeriesCovers":          {name: (*matrix).theSeries},
	"selectSeriesCover":         {name: (*matrix).seriesCover},
	"deleteSeriesCover":         {name: (*matrix).seriesCover, status: 204},
	"getSeriesCoverImage":       {name: (*matrix).seriesCover},
	"getReadingStats":           {},
	"getReadingCoverage":        {},
	"chooseSeriesCover":         {name: (*matrix).theSeries, body: value(object{"source": "first_book"})},
	"resetSeriesCover":          {name: (*matrix).theSeries, status: 204},
	"getSeriesLocks":            {name: (*matrix).theSeries},
	"putSeriesLocks":            {name: (*matrix).theSeries, body: value(object{"summary": true})},

	"listLibrarySeriesInProgress":      {name: (*matrix).library},
	"listLibrarySeriesRecentlyAdded":   {name: (*matrix).library},
	"listLibrarySeriesRecentlyUpdated": {name: (*matrix).library},

	"listLibraryBooks":              {name: (*matrix).library},
	"listLibraryBooksInProgress":    {name: (*matrix).library},
	"listLibraryBooksOnDeck":        {name: (*matrix).library},
	"listLibraryBooksRecentlyRead":  {name: (*matrix).library},
	"listLibraryBooksRecentlyAdded": {name: (*matrix).library},

	"listBooks":              {},
	"filterBooks":            {body: value(object{"fullTextSearch": "gehei"})},
	"listBooksInProgress":    {},
	"listCurrentlyReading":   {},
	"listBooksOnDeck":        {},
	"listBooksRecentlyRead":  {},
	"listBooksRecentlyAdded": {},
	"getBook":                {name: (*matrix).theBook},
	"getFullBook":            {name: (*matrix).theBook},
	"listPages":              {name: (*matrix).theBook},
	"listBookErrors":         {},
	"listDuplicates":         {},
	"findDuplicates":         {body: (*matrix).noSearch},
	"dismissDuplicate":       {name: (*matrix).duplicates, status: 204},
	"listSeriesDuplicates":   {},
	"dismissSeriesDuplicate": {name: (*matrix).sameSeries, status: 204},
	"retryBook":              {name: (*matrix).brokenBook},
	"retryBookErrors":        {body: value(object{})},
	"analyzeBook":            {name: (*matrix).theBook},
	"analyzeNewBook":         {name: (*matrix).newBook},
	"analyzeBooks":           {body: (*matrix).severalBooks},
	"uploadBookCover":        {name: (*matrix).theBook, body: value(testkit.Form{Member: "file", File: aPicture}), status: 201},
	"listBookCovers":         {name: (*matrix).theBook},
	"selectBookCover":        {name: (*matrix).bookCover},
	"deleteBookCover":        {name: (*matrix).bookCover, status: 204},
	"getBookCoverImage":      {name: (*matrix).bookCover},
	"resetBookCover":         {name: (*matrix).theBook, status: 204},
	"makeBookCover":          {name: (*matrix).theBook, body: value(object{})},
	"makeBookCovers":         {body: (*matrix).severalBooks},
	"makeSeveralBookCovers":  {body: (*matrix).severalBooks},
	"patchBook":              {name: (*matrix).theBook, body: value(object{"volume": 3})},
	"patchBookMetadata":      {name: (*matrix).theBook, body: value(object{"summary": "s"})},
	"putBookMetadata":        {name: (*matrix).theBook, body: value(object{"summary": "s"})},
	"getBookLocks":           {name: (*matrix).theBook},
	"putBookLocks":           {name: (*matrix).theBook, body: value(object{"summaryLock": true})},
	"getProgress":            {name: (*matrix).begun},
	"getBookHistory":         {name: (*matrix).theBook},
	"forgetBook":             {name: (*matrix).theBook, status: 204},
	"forgetReading":          {name: (*matrix).completed, status: 204},
	"getSeriesHistory":       {name: (*matrix).theSeries},
	"forgetSeries":           {name: (*matrix).theSeries, status: 204},
	"forgetAll":              {status: 204},
	"setProgress":            {name: (*matrix).theBook, body: value(object{"currentPage": 1})},
	"getProgression":         {name: (*matrix).placed},
	"setProgression":         {name: (*matrix).theBook, body: value(aPlace), status: 204},
	"clearProgress":          {name: (*matrix).theBook, status: 204},
	"readBook":               {name: (*matrix).theBook},
	"unreadBook":             {name: (*matrix).theBook, status: 204},
	"listProgress":           {},
	"getAdjacentBooks":       {name: (*matrix).theBook},
	"readBooks":              {body: (*matrix).severalBooks},
	"recordReadingSessions":  {body: (*matrix).sessions},
	"unreadBooks":            {body: (*matrix).severalBooks},

	"listGenres":        {},
	"listTags":          {},
	"cleanUpGenres":     {},
	"cleanUpTags":       {},
	"deleteGenre":       {name: (*matrix).genre, status: 204},
	"deleteTag":         {name: (*matrix).tag, status: 204},
	"changeAllGenres":   {body: (*matrix).severalTerms},
	"changeAllTags":     {body: (*matrix).severalTerms},
	"listSeriesGenres":  {name: (*matrix).theSeries},
	"listSeriesTags":    {name: (*matrix).theSeries},
	"addSeriesGenre":    {name: (*matrix).theSeries, body: value(object{"name": "Geheim"}), status: 201},
	"addSeriesTag":      {name: (*matrix).theSeries, body: value(object{"name": "Geheim"}), status: 201},
	"putSeriesGenres":   {name: (*matrix).theSeries, body: value(object{"genres": []string{"Geheim"}})},
	"putSeriesTags":     {name: (*matrix).theSeries, body: value(object{"tags": []string{"Geheim"}})},
	"removeSeriesGenre": {name: (*matrix).seriesGenre, status: 204},
	"removeSeriesTag":   {name: (*matrix).seriesTag, status: 204},

	"changeAllBookGenres": {body: (*matrix).severalBookTerms},
	"changeAllBookTags":   {body: (*matrix).severalBookTerms},
	"listBookGenres":      {name: (*matrix).theBook},
	"listBookTags":        {name: (*matrix).theBook},
	"addBookGenre":        {name: (*matrix).theBook, body: value(object{"name": "Geheim"}), status: 201},
	"addBookTag":          {name: (*matrix).theBook, body: value(object{"name": "Geheim"}), status: 201},
	"putBookGenres":       {name: (*matrix).theBook, body: value(object{"genres": []string{"Geheim"}})},
	"putBookTags":         {name: (*matrix).theBook, body: value(object{"tags": []string{"Geheim"}})},
	"removeBookGenre":     {name: (*matrix).bookGenre, status: 204},
	"removeBookTag":       {name: (*matrix).bookTag, status: 204},

	"listSeriesAlternateTitles":  {name: (*matrix).theSeries},
	"addSeriesAlternateTitle":    {name: (*matrix).theSeries, body: value(object{"label": "l", "title": "Geheim"}), status: 201},
	"updateSeriesAlternateTitle": {name: (*matrix).otherTitle, body: value(object{"title": "Geheim"})},
	"removeSeriesAlternateTitle": {name: (*matrix).otherTitle, status: 204},
	"listSeriesExternalIds":      {name: (*matrix).theSeries},
	"addSeriesExternalId":        {name: (*matrix).theSeries, body: value(object{"source": "s", "externalId": "Geheim"}), status: 201},
	"removeSeriesExternalId":     {name: (*matrix).seriesID, status: 204},
	"listSeriesExternalLinks":    {name: (*matrix).theSeries},
	"addSeriesExternalLink":      {name: (*matrix).theSeries, body: value(object{"sourceName": "s", "url": "http://geheim.example"}), status: 201},
	"removeSeriesExternalLink":   {name: (*matrix).seriesLink, status: 204},
	"listSeriesExternalRatings":  {name: (*matrix).theSeries},
	"addSeriesExternalRating":    {name: (*matrix).theSeries, body: value(object{"sourceName": "Geheim", "rating": 5}), status: 201},
	"removeSeriesExternalRating": {name: (*matrix).seriesRated, status: 204},
	"listBookExternalIds":        {name: (*matrix).theBook},
	"addBookExternalId":          {name: (*matrix).theBook, body: value(object{"source": "s", "externalId": "Geheim"}), status: 201},
	"removeBookExternalId":       {name: (*matrix).bookID, status: 204},
	"listBookExternalLinks":      {name: (*matrix).theBook},
	"addBookExternalLink":        {name: (*matrix).theBook, body: value(object{"sourceName": "s", "url": "http://geheim.example"}), status: 201},
	"removeBookExternalLink":     {name: (*matrix).bookLink, status: 204},

	"patchAllSeriesMetadata": {body: value(object{"seriesIds": []string{}, "publisher": "Geheim"})},
	"putAllSeriesLocks":      {body: value(object{"seriesIds": []string{}, "genres": true})},
	"patchAllBookMetadata":   {body: value(object{"bookIds": []string{}, "publisher": "Geheim"})},
	"putAllBookLocks":        {body: value(object{"bookIds": []string{}, "yearLock": true})},
	"groupSeries":            {body: value(object{})},

	"listFilterPresets":  {},
	"createFilterPreset": {body: (*matrix).newPreset, status: 201},
	"getFilterPreset":    {name: (*matrix).preset},
	"updateFilterPreset": {name: (*matrix).preset, body: (*matrix).newPreset},
	"deleteFilterPreset": {name: (*matrix).preset, status: 204},

	"listExports":      {},
	"createExport":     {body: (*matrix).newExport, status: 201},
	"listExportFields": {},
	"getExport":        {name: (*matrix).export},
	"deleteExport":     {name: (*matrix).export, status: 204},
	"downloadExport":   {name: (*matrix).export},

	"listSharingTags":         {},
	"createSharingTag":        {body: (*matrix).newNamed, status: 201},
	"getSharingTag":           {name: (*matrix).sharingTag},
	"updateSharingTag":        {name: (*matrix).sharingTag, body: value(object{"description": "Geheim"})},
	"deleteSharingTag":        {name: (*matrix).sharingTag, status: 204},
	"listSeriesSharingTags":   {name: (*matrix).theSeries},
	"putSeriesSharingTags":    {name: (*matrix).theSeries, body: value(object{"sharingTagIds": []string{}})},
	"addSeriesSharingTag":     {name: (*matrix).theSeries, body: (*matrix).aSharingTag},
	"removeSeriesSharingTag":  {name: (*matrix).sharedSeries, status: 204},
	"listOwnSharingTags":      {},
	"listUserSharingTags":     {name: (*matrix).user},
	"putUserSharingTag":       {name: (*matrix).user, body: (*matrix).aGrant},
	"deleteUserSharingTag":    {name: (*matrix).grantedUser, status: 204},
	"listUserEffectiveGrants": {name: (*matrix).user},
	"listUserAccessGroups":    {name: (*matrix).user},
	"listAccessGroups":        {},
	"createAccessGroup":       {body: (*matrix).newNamed, status: 201},
	"getAccessGroup":          {name: (*matrix).accessGroup},
	"updateAccessGroup":       {name: (*matrix).accessGroup, body: value(object{"description": "Geheim"})},
	"deleteAccessGroup":       {name: (*matrix).accessGroup, status: 204},
	"addAccessGroupGrant":     {name: (*matrix).accessGroup, body: (*matrix).aGrant},
	"removeAccessGroupGrant":  {name: (*matrix).grantedGroup, status: 204},
	"addAccessGroupMembers":   {name: (*matrix).accessGroup, body: (*matrix).aMember},
	"removeAccessGroupMember": {name: (*matrix).joinedGroup, status: 204},

	"addAccessGroupOidcMapping":    {name: (*matrix).accessGroup, body: value(object{"oidcGroupName": "Geheim"}), status: 201},
	"removeAccessGroupOidcMapping": {name: (*matrix).mappedGroup, status: 204},

	"listPlugins":          {},
	"createPlugin":         {body: (*matrix).newPlugin, status: 201},
	"getPlugin":            {name: (*matrix).plugin},
	"updatePlugin":         {name: (*matrix).plugin, body: value(object{"description": "Geheim"})},
	"deletePlugin":         {name: (*matrix).plugin, status: 204},
	"enablePlugin":         {name: (*matrix).plugin},
	"disablePlugin":        {name: (*matrix).plugin},
	"resetPlugin":          {name: (*matrix).plugin},
	"testPlugin":           {name: (*matrix).plugin},
	"getPluginHealth":      {name: (*matrix).plugin},
	"listPluginFailures":   {name: (*matrix).plugin},
	"listPluginActions":    {query: "scope=series:detail"},
	"listPluginWebLinks":   {},
	"executePlugin":        {name: (*matrix).plugin, body: value(object{"action": object{"metadata": object{"action": "search", "contentType": "series", "params": object{"query": "Geheim"}}}})},
	"getPluginMetrics":     {},
	"getPluginStorage":     {},
	"getStorageOfPlugin":   {name: (*matrix).plugin},
	"emptyStorageOfPlugin": {name: (*matrix).plugin},

	"listUserPlugins":          {},
	"getUserPlugin":            {name: (*matrix).userPlugin},
	"enableUserPlugin":         {name: (*matrix).offeredPlugin},
	"disableUserPlugin":        {name: (*matrix).userPlugin},
	"deleteUserPlugin":         {name: (*matrix).userPlugin, status: 204},
	"updateUserPluginConfig":   {name: (*matrix).userPlugin, body: value(object{"config": object{"shelf": "Geheim"}})},
	"setUserPluginSyncMode":    {name: (*matrix).userPlugin, body: value(object{"auto": true})},
	"setUserPluginCredentials": {name: (*matrix).userPlugin, body: value(object{"accessToken": "t0ken"})},
	"getUserPluginTask":        {name: (*matrix).userPlugin, status: 204},
	"startUserPluginSignIn":    {name: (*matrix).offeredPlugin},
	"finishUserPluginSignIn":   {query: "state=unknown&code=x", status: 400},
	"syncUserPlugin":           {name: (*matrix).userPlugin},
	"getUserPluginSync":        {name: (*matrix).userPlugin, query: "live=true"},
	"listRecommendations":      {name: (*matrix).recommended},
	"refreshRecommendations":   {name: (*matrix).recommended},
	"dismissRecommendation":    {name: (*matrix).recommended, body: value(object{"reason": "already_read"})},
	"previewSeriesMetadata":    {name: (*matrix).theSeries, body: (*matrix).asked},
	"applySeriesMetadata":      {name: (*matrix).theSeries, body: (*matrix).asked},
	"getSeriesSearchTitle":     {name: (*matrix).searchedSeries, query: "pluginId={second}"},
	"matchSeries":              {name: (*matrix).theSeries, body: (*matrix).asked},
	"matchSeriesByTask":        {name: (*matrix).theSeries, body: (*matrix).asked},
	"matchAllSeriesByTask":     {body: (*matrix).askedAll, foreign: 404},
	"matchLibraryByTask":       {name: (*matrix).library, body: (*matrix).asked},
	"previewBookMetadata":      {name: (*matrix).theBook, body: (*matrix).asked},
	"applyBookMetadata":        {name: (*matrix).theBook, body: (*matrix).asked},

	"listFieldGroups":  {},
	"listLibraryJobs":  {name: (*matrix).library},
	"createLibraryJob": {name: (*matrix).library, body: (*matrix).newJob, status: 201},
	"getLibraryJob":    {name: (*matrix).job},
	"updateLibraryJob": {name: (*matrix).job, body: value(object{"name": "Geheim"})},
	"deleteLibraryJob": {name: (*matrix).job, status: 204},
	"runLibraryJob":    {name: (*matrix).job},
	"tryLibraryJob":    {name: (*matrix).job, body: value(object{"sampleSize": 1})},

	"getRating":        {name: (*matrix).rated},
	"putRating":        {name: (*matrix).theSeries, body: value(object{"rating": 5})},
	"deleteRating":     {name: (*matrix).theSeries, status: 204},
	"getAverageRating": {name: (*matrix).theSeries},
	"listRatings":      {},

	"getTracking":             {name: (*matrix).trackedSeries},
	"patchTracking":           {name: (*matrix).theSeries, body: value(object{"tracked": true})},
	"trackSeries":             {body: (*matrix).severalSeries},
	"untrackSeries":           {body: (*matrix).severalSeries},
	"listAliases":             {name: (*matrix).aliased},
	"addAlias":                {name: (*matrix).theSeries, body: (*matrix).anAlias, status: 201},
	"removeAlias":             {name: (*matrix).aliased, status: 204},
	"listReleases":            {query: "state=all"},
	"getReleaseFacets":        {query: "state=all"},
	"listSeriesReleases":      {name: (*matrix).theSeries},
	"changeReleases":          {body: (*matrix).releases},
	"patchRelease":            {name: (*matrix).release, body: value(object{"state": "hidden"})},
	"dismissRelease":          {name: (*matrix).release},
	"acquireRelease":          {name: (*matrix).release},
	"deleteRelease":           {name: (*matrix).release, status: 204},
	"listReleaseSources":      {},
	"getReleaseApplicability": {},
	"patchReleaseSource":      {name: (*matrix).releaseSource, body: value(object{"displayName": "Geheim"})},
	"resetReleaseSource":      {name: (*matrix).releaseSource},
	"resetReleaseSources":     {},
	"pollReleaseSource":       {name: (*matrix).releaseSource},
	"pollReleaseSources":      {},

	"listWanted":         {},
	"addWanted":          {body: (*matrix).aWanted, status: 201, foreign: 404},
	"addAllWanted":       {body: value(object{"seriesIds": []string{}})},
	"orderWanted":        {body: value(object{"ids": []string{}}), status: 204},
	"removeWantedSeries": {name: (*matrix).theSeries, status: 204},
	"removeWantedBook":   {name: (*matrix).theBook, status: 204},

	"listCollections":         {},
	"createCollection":        {body: (*matrix).newCollection, status: 201},
	"getCollection":           {name: (*matrix).collection},
	"updateCollection":        {name: (*matrix).collection, body: value(object{"ordered": true})},
	"deleteCollection":        {name: (*matrix).collection, status: 204},
	"listSeriesOfCollection":  {name: (*matrix).collection},
	"addToCollection":         {name: (*matrix).collection, body: (*matrix).severalSeries},
	"orderCollection":         {name: (*matrix).collection, body: (*matrix).severalSeries, status: 204},
	"removeFromCollection":    {name: (*matrix).collection, status: 204},
	"getCollectionThumbnail":  {name: (*matrix).collection},
	"listCollectionsOfSeries": {name: (*matrix).theSeries},
	"listReadLists":           {},
	"createReadList":          {body: (*matrix).newCollection, status: 201},
	"getReadList":             {name: (*matrix).readList},
	"updateReadList":          {name: (*matrix).readList, body: value(object{"ordered": true})},
	"deleteReadList":          {name: (*matrix).readList, status: 204},
	"listBooksOfReadList":     {name: (*matrix).readList},
	"addToReadList":           {name: (*matrix).readList, body: (*matrix).severalBooks},
	"orderReadList":           {name: (*matrix).readList, body: (*matrix).severalBooks, status: 204},
	"removeFromReadList":      {name: (*matrix).readList, status: 204},
	"getReadListThumbnail":    {name: (*matrix).readList},
	"listReadListsOfBook":     {name: (*matrix).theBook},

	"downloadSeries": {name: (*matrix).theSeries},
	"getPage":        {name: (*matrix).theBook},
	"getPageAddress": {name: (*matrix).theBook},

	"opds2SearchSeries":     {query: "query=gehei"},
	"opds2SearchBooks":      {query: "query=gehei"},
	"opdsCatalog":           {},
	"opdsFirstCatalog":      {},
	"opdsLibraries":         {},
	"opdsLibrary":           {name: (*matrix).library},
	"opdsSeries":            {name: (*matrix).theSeries},
	"opdsCollections":       {},
	"opdsCollection":        {name: (*matrix).collection},
	"opdsReadLists":         {},
	"opdsReadList":          {name: (*matrix).readList},
	"opds2Collections":      {},
	"opds2Collection":       {name: (*matrix).collection},
	"opds2ReadLists":        {},
	"opds2ReadList":         {name: (*matrix).readList},
	"opdsRecent":            {},
	"opdsSearch":            {query: "q=gehei"},
	"opdsSearchDescription": {},
	"opdsPages":             {name: (*matrix).theBook},
	"opdsPage":              {name: (*matrix).theBook},
	"opdsPageStream":        {name: (*matrix).theBook},
	"opds2Catalog":          {},
	"opds2Libraries":        {},
	"opds2Library":          {name: (*matrix).library},
	"opds2Series":           {name: (*matrix).theSeries},
	"opds2Book":             {name: (*matrix).theBook},
	"opds2Recent":           {},
	"opds2Search":           {query: "query=gehei"},
	"getBookFile":           {name: (*matrix).theBook},
	"getNamedBookFile":      {name: (*matrix).theBook},
	"getBookThumbnail":      {name: (*matrix).theBook},
	"getSeriesThumbnail":    {name: (*matrix).theSeries},
	"getLibraryThumbnail":   {name: (*matrix).library},

	"koreaderCreateUser":  {status: 403},
	"koreaderAuthorize":   {},
	"koreaderGetProgress": {name: text("unknown"), shared: true, status: 404},
	"koreaderSetProgress": {body: value(object{"document": "unknown", "progress": 1, "percentage": 0.5})},

	"komgaClearReadProgress":            {name: (*matrix).theBook, status: 204},
	"komgaFilterBooks":                  {body: value(object{"condition": object{"title": object{"operator": "contains", "value": "gehei"}}})},
	"komgaFilterSeries":                 {body: value(object{"condition": object{"title": object{"operator": "contains", "value": "gehei"}}})},
	"komgaFirstMe":                      {},
	"komgaGetBook":                      {name: (*matrix).theBook},
	"komgaGetBookFile":                  {name: (*matrix).theBook},
	"komgaGetNamedBookFile":             {name: (*matrix).theBook},
	"komgaGetBookThumbnail":             {name: (*matrix).theBook},
	"komgaGetDivinaManifest":            {name: (*matrix).theBook},
	"komgaGetEPUBManifest":              {name: (*matrix).theBook, status: 404}, // not an EPUB
	"komgaGetLibrary":                   {name: (*matrix).library},
	"komgaGetLibraryThumbnail":          {name: (*matrix).library},
	"komgaGetManifest":                  {name: (*matrix).theBook},
	"komgaGetNextBook":                  {name: (*matrix).theBook, status: 404},
	"komgaGetPage":                      {name: (*matrix).theBook},
	"komgaGetPageThumbnail":             {name: (*matrix).theBook},
	"komgaGetPositions":                 {name: (*matrix).theBook},
	"komgaGetPreviousBook":              {name: (*matrix).theBook, status: 404},
	"komgaGetProgression":               {name: (*matrix).placed},
	"komgaGetResource":                  {name: (*matrix).theBook, status: 404}, // not an EPUB
	"komgaGetReadListProgress":          {name: (*matrix).readList},
	"komgaGetSeries":                    {name: (*matrix).theSeries},
	"komgaGetSeriesProgress":            {name: (*matrix).theSeries},
	"komgaGetSeriesThumbnail":           {name: (*matrix).theSeries},
	"komgaListAgeRatings":               {},
	"komgaListAuthorPages":              {},
	"komgaListAuthors":                  {},
	"komgaListBooks":                    {},
	"komgaListBooksOnDeck":              {},
	"komgaGetWantedCollection":          {status: 404},
	"komgaGetWantedReadList":            {status: 404},
	"komgaListWantedSeries":             {},
	"komgaListWantedBooks":              {},
	"komgaGetCollection":                {name: (*matrix).collection},
	"komgaGetReadList":                  {name: (*matrix).readList},
	"komgaListCollectionSeries":         {name: (*matrix).collection},
	"komgaListReadListBooks":            {name: (*matrix).readList},
	"komgaListSeriesCollections":        {name: (*matrix).theSeries},
	"komgaListBookReadLists":            {name: (*matrix).theBook},
	"komgaGetWantedCollectionThumbnail": {},
	"komgaGetWantedReadListThumbnail":   {},
	"komgaListSeriesTags":               {},
	"komgaListBookTags":                 {},
	"komgaListSharingLabels":            {},
	"komgaListReleaseDates":             {},
	"komgaGetCollectionThumbnail":       {name: (*matrix).collection},
	"komgaGetReadListThumbnail":         {name: (*matrix).readList},
	"komgaListCollections":              {},
	"komgaListGenres":                   {},
	"komgaListLanguages":                {},
	"komgaListLatestBooks":              {},
	"komgaListLatestSeries":             {},
	"komgaListLibraries":                {},
	"komgaListNewSeries":                {},
	"komgaListPages":                    {name: (*matrix).theBook},
	"komgaListPublishers":               {},
	"komgaListReadLists":                {},
	"komgaListSeries":                   {},
	"komgaListSeriesBooks":              {name: (*matrix).theSeries},
	"komgaListTags":                     {},
	"komgaListUpdatedSeries":            {},
	"komgaMe":                           {},
	"komgaReadSeries":                   {name: (*matrix).theSeries, status: 204},
	"komgaSetProgression":               {name: (*matrix).theBook, body: value(aPlace), status: 204},
	"komgaSetReadProgress":              {name: (*matrix).theBook, body: value(object{"page": 1}), status: 204},
	"komgaSetReadListProgress":          {name: (*matrix).readList, body: value(object{"lastBookRead": 1}), status: 204},
	"komgaSetSeriesProgress":            {name: (*matrix).theSeries, body: value(object{"lastBookNumberSortRead": 1}), status: 204},
	"komgaUnreadSeries":                 {name: (*matrix).theSeries, status: 204},
}

func (m *matrix) theBook(*testkit.Client) string   { return m.book.ID.String() }
func (m *matrix) theSeries(*testkit.Client) string { return m.book.SeriesID.String() }

// severalBooks and severalSeries belong to tenant one, whoever sends them. To another tenant these ids are unknown.
func (m *matrix) severalBooks(*testkit.Client) any {
	return object{"bookIds": []string{m.book.ID.String()}, "force": true}
}

func (m *matrix) aWanted(*testkit.Client) any { return object{"seriesId": m.book.SeriesID} }

func (m *matrix) sessions(*testkit.Client) any {
	return object{"sessions": []object{{"id": uuid.New(), "bookId": m.book.ID, "deviceId": "d", "kind": "progress", "toPage": 1,
		"clientStartedAt": "2024-05-01T00:00:00Z", "clientEndedAt": "2024-05-01T00:10:00Z"}}}
}

func (m *matrix) newTask(*testkit.Client) any {
	return object{"taskType": object{"type": "analyze_series", "seriesId": m.book.SeriesID.String()}}
}

func (m *matrix) severalSeries(*testkit.Client) any {
	return object{"seriesIds": []string{m.book.SeriesID.String()}, "force": true}
}

func (m *matrix) login(c *testkit.Client) any {
	return object{"username": m.known[c.Host], "password": testkit.Password}
}

func (m *matrix) refresh(c *testkit.Client) any {
	r := m.Anonymous(m.t, c.Host[:len(c.Host)-len(".test")]).Do("POST", "/api/v1/auth/login", m.login(c)).Want(200).Map()
	return object{"refreshToken": r["refresh_token"]}
}

func (m *matrix) newcomer(*testkit.Client) any {
	m.n++
	name := "newcomer" + strconv.Itoa(m.n)
	return object{"username": name, "email": name + "@example.org", "password": testkit.Password}
}

func (m *matrix) newLibrary(*testkit.Client) any {
	m.n++
	return object{"name": "Geheim " + strconv.Itoa(m.n), "path": "/books"}
}

func (m *matrix) newCollection(*testkit.Client) any {
	m.n++
	return object{"name": "Made " + strconv.Itoa(m.n)}
}

func (m *matrix) severalTerms(*testkit.Client) any {
	return object{"seriesIds": []string{m.book.SeriesID.String()}, "add": []string{"Geheim"}}
}

func (m *matrix) severalBookTerms(*testkit.Client) any {
	return object{"bookIds": []string{m.book.ID.String()}, "add": []string{"Geheim"}}
}

func (m *matrix) newPreset(*testkit.Client) any {
	m.n++
	return object{"scope": "list", "target": "books", "name": "Made " + strconv.Itoa(m.n), "condition": nil}
}

func (m *matrix) preset(owner *testkit.Client) string {
	id := uuid.New()
	m.exec(`insert into filter_preset (tenant_id, account_id, id, name, scope, target, condition) values ($1, $2, $3, 'Geheim ' || $3::uuid, 'list', 'books', 'null')`, m.One, owner.ID, id)
	return id.String()
}

// newExport first deletes the user's exports, because a user may have only a few.
func (m *matrix) newExport(c *testkit.Client) any {
	m.exec("delete from series_export where account_id = $1", c.ID)
	return object{"format": "csv", "exportType": "books"}
}

func (m *matrix) export(owner *testkit.Client) string {
	id, data := uuid.New(), []byte("Geheim")
	object := m.One.String() + "/export/" + id.String() + "/1"
	if err := m.s3.Config.Media().Put(context.Background(), m.s3.Config.MediaBucket, object, "text/csv", data); err != nil {
		m.t.Fatal(err)
	}
	m.exec(`insert into series_export (tenant_id, account_id, id, format, export_type, library_ids, fields, book_fields, object, sight, file_size, row_count, completed_at, expires_at)
		values ($1, $2, $3, 'csv', 'series', '{}', '{}', '{}', $4, '', $5, 1, now(), now() + interval '1 day')`, m.One, owner.ID, id, object, len(data))
	return id.String()
}

// genre and tag are not used by anything; the others belong to the matrix's series and book.
func (m *matrix) genre(*testkit.Client) string { return m.term("genre") }
func (m *matrix) tag(*testkit.Client) string   { return m.term("tag") }

func (m *matrix) term(table string) string {
	id := uuid.New()
	m.exec("insert into "+table+" (tenant_id, id, name) values ($1, $2, 'Geheim ' || $2::uuid)", m.One, id)
	return id.String()
}

func (m *matrix) seriesGenre(*testkit.Client) string { return m.termOf("genre", "series") }
func (m *matrix) seriesTag(*testkit.Client) string   { return m.termOf("tag", "series") }
func (m *matrix) bookGenre(*testkit.Client) string   { return m.termOf("genre", "book") }
func (m *matrix) bookTag(*testkit.Client) string     { return m.termOf("tag", "book") }

func (m *matrix) termOf(table, owner string) string {
	id, of := m.term(table), map[string]uuid.UUID{"series": m.book.SeriesID, "book": m.book.ID}[owner]
	m.exec("insert into "+owner+"_"+table+" (tenant_id, "+owner+"_id, "+table+"_id) values ($1, $2, $3)", m.One, of, id)
	return of.String() + "|" + id
}

// The following belong to the matrix's series and book.
func (m *matrix) otherTitle(*testkit.Client) string {
	return m.reference("alternate_title", "series_id, label, title", "series")
}
func (m *matrix) seriesID(*testkit.Client) string {
	return m.reference("external_id", "series_id, source, external_id", "series")
}
func (m *matrix) seriesLink(*testkit.Client) string {
	return m.reference("external_link", "series_id, source_name, url", "series")
}
func (m *matrix) bookID(*testkit.Client) string {
	return m.reference("external_id", "book_id, source, external_id", "book")
}
func (m *matrix) bookLink(*testkit.Client) string {
	return m.reference("external_link", "book_id, source_name, url", "book")
}

func (m *matrix) reference(table, columns, owner string) string {
	id, of := uuid.New(), m.book.SeriesID
	if owner == "book" {
		of = m.book.ID
	}
	m.exec("insert into "+table+" (tenant_id, id, "+columns+") values ($1, $2, $3, $2::uuid, 'Geheim')", m.One, id, of)
	return of.String() + "|" + id.String()
}

func (m *matrix) seriesRated(*testkit.Client) string {
	id := uuid.New()
	m.exec("insert into external_rating (tenant_id, id, series_id, source_name, rating) values ($1, $2, $3, $2::uuid, 5)", m.One, id, m.book.SeriesID)
	return m.book.SeriesID.String() + "|" + id.String()
}

// aPicture is the smallest GIF.
var aPicture = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

func (m *matrix) seriesCover(*testkit.Client) string { return m.cover("series", m.book.SeriesID) }
func (m *matrix) bookCover(*testkit.Client) string   { return m.cover("book", m.book.ID) }

func (m *matrix) cover(owner string, of uuid.UUID) string {
	id := uuid.New()
	m.exec("insert into "+owner+"_cover (tenant_id, id, "+owner+"_id, fingerprint, type, image, size) values ($1, $2, $3, $2::uuid, 'image/gif', $4, $5)",
		m.One, id, of, aPicture, len(aPicture))
	return of.String() + "|" + id.String()
}

func (m *matrix) sharingTag(*testkit.Client) string {
	id := uuid.New()
	m.exec("insert into sharing_tag (tenant_id, id, name) values ($1, $2, $3)", m.One, id, "Geheim "+id.String())
	return id.String()
}

func (m *matrix) accessGroup(*testkit.Client) string {
	id := uuid.New()
	m.exec("insert into access_group (tenant_id, id, name) values ($1, $2, $3)", m.One, id, "Geheim "+id.String())
	return id.String()
}

func (m *matrix) newNamed(*testkit.Client) any { return object{"name": "New " + uuid.NewString()} }

// aSharingTag, aGrant and aMember belong to tenant one, whoever sends them.
func (m *matrix) aSharingTag(*testkit.Client) any { return object{"sharingTagId": m.tagged} }

func (m *matrix) aGrant(*testkit.Client) any {
	return object{"sharingTagId": m.tagged, "accessMode": "deny"}
}

func (m *matrix) aMember(*testkit.Client) any { return object{"userIds": []string{m.someone}} }

// sharedSeries, grantedUser, grantedGroup and joinedGroup return an id together with the id of what is taken from it.
func (m *matrix) sharedSeries(c *testkit.Client) string {
	tag := m.sharingTag(c)
	m.exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", m.One, m.book.SeriesID, tag)
	return m.book.SeriesID.String() + "|" + tag
}

func (m *matrix) grantedUser(c *testkit.Client) string {
	user, tag := m.user(c), m.sharingTag(c)
	m.exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'allow')", m.One, tag, user)
	return user + "|" + tag
}

func (m *matrix) grantedGroup(c *testkit.Client) string {
	group, tag := m.accessGroup(c), m.sharingTag(c)
	m.exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, group_id, mode) values ($1, gen_random_uuid(), $2, $3, 'allow')", m.One, tag, group)
	return group + "|" + tag
}

func (m *matrix) joinedGroup(c *testkit.Client) string {
	group, user := m.accessGroup(c), m.user(c)
	m.exec("insert into access_group_member (tenant_id, group_id, account_id) values ($1, $2, $3)", m.One, group, user)
	return group + "|" + user
}

// mappedGroup returns a group and a mapping of it.
func (m *matrix) mappedGroup(c *testkit.Client) string {
	group, id := m.accessGroup(c), uuid.NewString()
	m.exec("insert into access_group_oidc_mapping (tenant_id, id, group_id, oidc_group_name) values ($1, $2, $3, 'Geheim')", m.One, id, group)
	return group + "|" + id
}

func (m *matrix) rated(owner *testkit.Client) string {
	m.exec(`insert into series_rating (tenant_id, account_id, series_id, id, rating, notes) values ($1, $2, $3, gen_random_uuid(), 5, 'Geheim') on conflict do nothing`,
		m.One, owner.ID, m.book.SeriesID)
	return m.theSeries(owner)
}

// collection and readList contain the matrix's series or book.
func (m *matrix) collection(*testkit.Client) string {
	return m.filled("series", "series_id", m.book.SeriesID)
}
func (m *matrix) readList(*testkit.Client) string { return m.filled("books", "book_id", m.book.ID) }

func (m *matrix) filled(kind, column string, member uuid.UUID) string {
	id := uuid.New()
	m.exec("insert into collection (tenant_id, id, kind, name) values ($1, $2, $3, 'Geheim ' || $2::uuid)", m.One, id, kind)
	m.exec("insert into collection_member (tenant_id, id, collection_id, "+column+", place) values ($1, gen_random_uuid(), $2, $3, 1)", m.One, id, member)
	return id.String()
}

func (m *matrix) user(*testkit.Client) string { return m.User(m.t, "one", "reader").ID.String() }

func (m *matrix) key(owner *testkit.Client) string {
	id := uuid.New()
	_, prefix, hash := auth.NewAPIKey()
	m.exec("insert into api_key (tenant_id, id, account_id, name, prefix, hash, permissions) values ($1, $2, $3, 'Geheim', $4, $5, '{}')",
		owner.Tenant, id, owner.ID, prefix, hash)
	return id.String()
}

func (m *matrix) preference(owner *testkit.Client) string {
	m.exec(`insert into preference (tenant_id, account_id, key, value) values ($1, $2, 'reader.theme', '1') on conflict do nothing`, owner.Tenant, owner.ID)
	return "reader.theme"
}

func (m *matrix) begun(owner *testkit.Client) string {
	m.exec(`insert into progress (tenant_id, account_id, book_id, id, current_page) values ($1, $2, $3, gen_random_uuid(), 1) on conflict do nothing`,
		m.One, owner.ID, m.book.ID)
	return m.book.ID.String()
}

// completed returns the book and a completed reading of it.
func (m *matrix) completed(owner *testkit.Client) string {
	id := uuid.New()
	m.exec(`insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at) values ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())`,
		m.One, id, owner.ID, m.book.ID)
	return m.book.ID.String() + "|" + id.String()
}

var aPlace = object{"locator": object{"href": "c1.xhtml", "locations": object{"totalProgression": 0.5}}}

func (m *matrix) placed(owner *testkit.Client) string {
	m.exec(`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, locator)
		select $1, $2, gen_random_uuid(), $3, coalesce(max(pass), 1), 'progress', 'd', now(), now(), '{"href":"c1.xhtml"}' from reading_session
		where tenant_id = $1 and account_id = $2 and book_id = $3`, m.One, owner.ID, m.book.ID)
	return m.book.ID.String()
}

func (m *matrix) library(*testkit.Client) string {
	id := uuid.New()
	m.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, $3, '/books', 'books', '', 'series_volume', 'filename', 'file_order')`, m.One, id, "Geheim "+id.String())
	return id.String()
}

// newSeries adds a series in its own library.
func (m *matrix) newSeries(c *testkit.Client) string {
	library, id := m.library(c), uuid.New()
	m.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		values ($1, $2, $3, 'Geheim', 'Geheim', 'Geheim', 'Geheim', 'geheim')`, m.One, id, library)
	return id.String()
}

// noSearch cancels the search for duplicates that another caller started.
func (m *matrix) noSearch(*testkit.Client) any {
	m.exec("update task set status = 'cancelled', completed_at = now() where type = 'find_duplicates'")
	return object{}
}

// duplicates adds a group of two books.
func (m *matrix) duplicates(c *testkit.Client) string {
	id := uuid.New()
	for range 2 {
		m.exec("update book set error_type = null, error_at = null, fingerprint = $1 where id = $2", id.String(), m.brokenBook(c))
	}
	m.exec("insert into duplicate (tenant_id, id, fingerprint) values ($1, $2, $3)", m.One, id, id.String())
	return id.String()
}

// sameSeries adds a group of two series with the same title.
func (m *matrix) sameSeries(c *testkit.Client) string {
	id := m.newSeries(c)
	m.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select tenant_id, gen_random_uuid(), library_id, 'geheim', 'geheim', 'geheim', 'geheim', search_title from series where id = $1`, id)
	m.exec("update series set book_count = 1 where library_id = (select library_id from series where id = $1)", id)
	m.exec("insert into series_duplicate (tenant_id, id, library_id, value) select tenant_id, id, library_id, search_title from series where id = $1", id)
	return id
}

// brokenBook adds a book that cannot be read.
func (m *matrix) brokenBook(c *testkit.Client) string {
	series, id := m.newSeries(c), uuid.New()
	m.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, error_type, error_at)
		select tenant_id, $1, library_id, id, 'x.cbz', 1, now(), 'cbz', 'x', 'x', 'x', 'killed', now() from series where id = $2`, id, series)
	return id.String()
}

// newBook adds a book that was never read.
func (m *matrix) newBook(c *testkit.Client) string {
	id := m.brokenBook(c)
	m.exec("update book set error_type = null, error_at = null where id = $1", id)
	return id
}

func (m *matrix) bucketLibrary(c *testkit.Client) string {
	id := m.library(c)
	m.exec("update library set path = 's3://books' where id = $1", id)
	return id
}

// upload starts an upload in parts, named library|upload.
func (m *matrix) upload(c *testkit.Client) string {
	library, id := m.bucketLibrary(c), uuid.NewString()
	begun, err := m.s3.Store.BeginParts(m.t.Context(), "books", "Geheim/"+id+".cbz", "application/zip")
	if err != nil {
		m.t.Fatal(err)
	}
	m.exec(`insert into upload (tenant_id, id, library_id, key, size, part_size, overwrite, store_id, expires_at)
		values ($1, $2, $3, $4, 20, 10, false, $5, now() + interval '1 hour')`, m.One, id, library, "Geheim/"+id+".cbz", begun)
	return library + "|" + id
}

func (m *matrix) task(status string, library any) string {
	id := uuid.New()
	var ended any
	if status == "failed" {
		ended = time.Now()
	}
	m.exec(`insert into task (tenant_id, id, type, status, library_id, completed_at) values ($1, $2, 'scan_library', $3, $4, $5)`,
		m.One, id, status, library, ended)
	return id.String()
}

func (m *matrix) pending(*testkit.Client) string { return m.task("pending", nil) }
func (m *matrix) failed(*testkit.Client) string  { return m.task("failed", nil) }
func (m *matrix) running(*testkit.Client) string { return m.task("running", nil) }

func (m *matrix) heldScan(c *testkit.Client) string {
	library := m.library(c)
	m.exec("insert into scan (tenant_id, id, library_id, mode, removals_held, files_total) values ($1, $2, $3, 'normal', 20, 30)", m.One, m.task("failed", library), library)
	return library
}

func (m *matrix) scanning(c *testkit.Client) string {
	library := m.library(c)
	m.exec("insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $3, 'normal')", m.One, m.task("pending", library), library)
	return library
}
